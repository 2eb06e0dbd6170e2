begin isolation level serializable;
select sum(abalance) from pgbench_accounts where aid <= 10;
update pgbench_accounts set abalance = abalance + 1 where aid = :client_id + 1;
select pg_sleep(0.005);
end;

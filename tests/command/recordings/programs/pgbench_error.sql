\set divisor random(0, 20)
select pg_sleep(0.005), 1 / :divisor;

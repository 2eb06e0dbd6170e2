select pg_sleep(:sleep / 1e6);

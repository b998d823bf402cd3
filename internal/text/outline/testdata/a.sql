-- Users of the service.
CREATE TABLE IF NOT EXISTS public."users" (
  id int, name text DEFAULT 'a;b'
);

CREATE UNIQUE INDEX users_name ON users (name);

/* Counts. */
CREATE OR REPLACE FUNCTION count_users(min int)
RETURNS int AS $body$
BEGIN
  CREATE TABLE x (a int);
  RETURN 1;
END;
$body$ LANGUAGE plpgsql;

CREATE TRIGGER touch AFTER INSERT ON users
FOR EACH ROW BEGIN
  UPDATE users SET a = 1;
END;

SELECT 1;
CREATE VIEW active AS SELECT * FROM users;

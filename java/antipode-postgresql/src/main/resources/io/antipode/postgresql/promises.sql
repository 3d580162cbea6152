CREATE TABLE IF NOT EXISTS antipode_promises (id uuid PRIMARY KEY, fulfilled boolean NOT NULL, until_s bigint NOT NULL);

CREATE INDEX IF NOT EXISTS antipode_promises_until ON antipode_promises (until_s);

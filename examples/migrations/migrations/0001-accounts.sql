CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO accounts SELECT number, 100 FROM generate_series(1, 10) AS number;

-- Twice would be a disaster, and so would a node that starts before it.
UPDATE accounts SET balance = balance * 100;
ALTER TABLE accounts RENAME balance TO cents;

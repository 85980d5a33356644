ALTER TABLE accounts ADD owner text NOT NULL DEFAULT 'nobody';

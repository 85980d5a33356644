SELECT incumbent_assert4('bench','scheduler',1);

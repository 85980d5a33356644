//! A seed leads to the same run each time, and runs hold.

use incumbent_drill::runs::{play, play_many};

#[test]
fn a_seed_leads_to_the_same_run() {
    for seed in 0..20 {
        let (first, second) = (play(seed, None, false), play(seed, None, false));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert!(first.violation.is_none(), "seed {seed}: {:?}", first.violation);
    }
}

#[test]
fn enough_happens() {
    let (counts, failures) = play_many(100, 20, None, 1);
    assert!(failures.is_empty(), "{failures:?}");
    assert!(counts.elections > 100 && counts.steps > 5_000 && counts.faults > 50, "{counts:?}");
}

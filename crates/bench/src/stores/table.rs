//! The results, as the table in the documentation has them, or as JSON.

use serde_json::{Value, json};

use super::beats::ByTurns;
use crate::spread::Spread;

/// What was measured of one store.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) beat: ByTurns,
    /// The write of a beat, without its read.
    pub(super) write: Spread,
    pub(super) take: ByTurns,
    pub(super) hand_over: ByTurns,
    /// Nothing where the store can't push.
    pub(super) push: Option<ByTurns>,
}

pub(super) const HEAD: &str = "\
| store | bare swap | beat | in bare | its write alone | take | in bare | hand-over | in bare | p99 | in bare | in p99 of bare | push | in bare |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

impl Row {
    pub(super) fn markdown(&self) -> String {
        let Self { name, beat, write, take, hand_over, push } = self;
        let pushed = push.as_ref().map_or_else(
            || ["none".to_owned(), String::new()],
            |push| [span(push.ours.median()), ratio(push.ratio())],
        );
        let cells = [
            (*name).to_owned(),
            span(beat.bare.median()),
            span(beat.ours.median()),
            ratio(beat.ratio()),
            ratio(write.median() / beat.bare.median()),
            span(take.ours.median()),
            ratio(take.ratio()),
            span(hand_over.ours.median()),
            ratio(hand_over.ratio()),
            span(hand_over.ours.quantile(0.99)),
            ratio(p99_in_bare(hand_over)),
            ratio(hand_over.ours.quantile(0.99) / hand_over.bare.quantile(0.99)),
        ];
        format!("| {} | {} |", cells.join(" | "), pushed.join(" | "))
    }

    pub(super) fn json(&self) -> Value {
        let by_turns = |it: &ByTurns| {
            json!({
                "bare_us": it.bare.median(),
                "bare_p99_us": it.bare.quantile(0.99),
                "us": it.ours.median(),
                "p99_us": it.ours.quantile(0.99),
                "in_bare": it.ratio(),
                "p99_in_bare": p99_in_bare(it),
                "count": it.ours.len(),
            })
        };
        json!({
            "store": self.name,
            "beat": by_turns(&self.beat),
            "write_alone_us": self.write.median(),
            "take": by_turns(&self.take),
            "hand_over": by_turns(&self.hand_over),
            "push": self.push.as_ref().map(by_turns),
        })
    }
}

fn p99_in_bare(it: &ByTurns) -> f64 {
    it.ours.quantile(0.99) / it.bare.median()
}

fn span(micros: f64) -> String {
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        ..10_000.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

fn ratio(times: f64) -> String {
    if times < 100.0 { format!("{times:.2}") } else { format!("{times:.0}") }
}

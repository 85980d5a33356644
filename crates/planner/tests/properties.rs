//! Properties of every plan, and that each catches the mistakes that it is there for.

mod common;

use std::fmt::Debug;

use incumbent_planner::Situation;
use incumbent_planner::mutant::PlanMutant;
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use common::history::history;
use common::properties::{self, Verdict};
use common::{Planner, arbitrary};

type Property<T> = fn(Planner, &T) -> Verdict;

/// Looks for a situation in which a property doesn't hold. Always the same situations, so that a
/// failure stays one; PROPTEST_CASES gives more of them.
fn search<T: Debug>(
    situations: BoxedStrategy<T>,
    property: Property<T>,
    planner: Planner,
    shrink: u32,
) -> Result<(), String> {
    let config =
        Config { failure_persistence: None, max_shrink_iters: shrink, ..Config::default() };
    // A planted mistake may take a while to show.
    let cases = if planner.0.is_some() { config.cases.max(2_000) } else { config.cases };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config { cases, ..config }, rng);
    let test = |situation: T| {
        property(planner, &situation).map_err(proptest::test_runner::TestCaseError::fail)
    };
    runner.run(&situations, test).map_err(|error| match error {
        TestError::Fail(reason, situation) => format!("{reason}\nin {situation:#?}"),
        TestError::Abort(reason) => format!("aborted: {reason}"),
    })
}

fn holds<T: Debug>(situations: BoxedStrategy<T>, property: Property<T>) {
    let story = search(situations, property, Planner(None), 5_000).err().unwrap_or_default();
    assert!(story.is_empty(), "{story}");
}

/// F39, F40, F44.
#[test]
fn no_rule_is_ever_broken() {
    holds(arbitrary::situation(), properties::keeps_rules);
}

#[test]
fn a_plan_says_the_truth() {
    holds(arbitrary::situation(), properties::is_truthful);
}

/// F43, F47: neither a strange pin nor balance keeps a duty from its home.
#[test]
fn every_duty_that_fits_is_placed() {
    holds(arbitrary::situation(), properties::is_total);
}

#[test]
fn duties_leave_nodes_that_drain_or_failed_them() {
    holds(arbitrary::situation(), properties::is_urgent);
}

#[test]
fn a_balanced_plan_needs_no_other() {
    holds(arbitrary::situation(), properties::comes_to_rest);
}

#[test]
fn movement_keeps_its_limits() {
    holds(arbitrary::situation(), properties::keeps_limits);
}

/// O17: all nodes restart, one after the other. Those that come back get what the next ones leave.
#[test]
fn a_rolling_restart_moves_little_more_than_it_must() {
    holds(arbitrary::zoned(), properties::restarts_once);
}

/// O1: work ends, and what was found until then is a sound plan.
#[test]
fn work_keeps_its_limit() {
    holds(arbitrary::hard(), properties::keeps_its_effort);
    holds(arbitrary::situation(), properties::is_sound_when_cut_short);
}

#[test]
fn order_decides_nothing() {
    holds(arbitrary::situation(), properties::ignores_order);
}

/// Whatever changes, in whatever order: what is remembered is what would be read.
#[test]
fn a_planner_that_is_told_of_changes_plans_as_if_it_read_everything() {
    holds(history(), properties::follows_changes);
}

#[test]
fn equal_duties_are_spread_evenly() {
    holds(arbitrary::uniform(), properties::is_even);
}

/// F45.
#[test]
fn new_duties_are_spread_within_one_round() {
    holds(arbitrary::fresh(), properties::is_even);
}

#[test]
fn moves_equal_the_lower_bound() {
    holds(arbitrary::uniform(), properties::moves_least);
}

#[test]
fn every_planted_mistake_is_caught_by_its_property() {
    for mutant in PlanMutant::ALL {
        let planner = Planner(Some(mutant));
        let found = match catcher(mutant) {
            Some((situations, property)) => search(situations, property, planner, 0),
            None => search(history(), properties::follows_changes, planner, 0),
        };
        assert!(found.is_err(), "{mutant:?} isn't caught: {}", mutant.story());
    }
}

/// The situations and the property that must catch a mistake; nothing for those that only changes show.
fn catcher(mutant: PlanMutant) -> Option<(BoxedStrategy<Situation>, Property<Situation>)> {
    let caught: (_, Property<_>) = match mutant {
        PlanMutant::VersionsIgnored
        | PlanMutant::CapacityIgnored
        | PlanMutant::CordonIgnored
        | PlanMutant::ApartIgnored
        | PlanMutant::PausedStarts => (arbitrary::situation(), properties::keeps_rules),
        PlanMutant::DrainForgotten | PlanMutant::FailedStays => {
            (arbitrary::situation(), properties::is_urgent)
        }
        PlanMutant::GivesUpEarly
        | PlanMutant::BalancedMeansDone
        | PlanMutant::UnknownPinPoisons => (arbitrary::situation(), properties::is_total),
        PlanMutant::Tireless => (arbitrary::hard(), properties::keeps_its_effort),
        PlanMutant::ZonesBeforeAll => (arbitrary::zoned(), properties::restarts_once),
        PlanMutant::MovesForNothing => (arbitrary::situation(), properties::comes_to_rest),
        PlanMutant::RoundLimitIgnored | PlanMutant::NodeLimitIgnored => {
            (arbitrary::situation(), properties::keeps_limits)
        }
        PlanMutant::InputOrder => (arbitrary::situation(), properties::ignores_order),
        PlanMutant::AllToOne => (arbitrary::fresh(), properties::is_even),
        PlanMutant::MovesTooMuch => (arbitrary::uniform(), properties::moves_least),
        PlanMutant::LeaverForgotten | PlanMutant::ChangeUnread => return None,
    };
    Some(caught)
}

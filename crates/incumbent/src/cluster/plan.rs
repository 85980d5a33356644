//! What the leader would do, and why: asked of the same planner, and nothing is changed.

use std::fmt;

use incumbent_core::records::Ask;
use incumbent_duties::DutyId;
use incumbent_duties::records::Moved;
use incumbent_duties::survey::{ASKED, PlanAnswer, Question, Survey};
use incumbent_planner::{Plan, Policy, Rebalance, explain};

use super::picture::Picture;
use super::{Cluster, DutyStanding};
use crate::error::ClusterError;
use crate::node::placement::Strategy;

/// What a plan would change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The duties that would move.
    pub moves: Vec<PlannedMove>,
    /// The duties that would run nowhere, and why.
    pub unplaced: Vec<(DutyId, String)>,
    /// What the leader goes by that could not be asked here, if anything: code of its own.
    pub unknown: Option<String>,
}

/// A move that a plan would make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedMove {
    /// Which duty.
    pub duty: DutyId,
    /// The node that has it.
    pub from: Option<String>,
    /// The node that would get it.
    pub to: Option<String>,
    /// Why it would move, in words.
    pub why: String,
}

/// Why a duty runs where it runs, or why it doesn't. Displayed, it is a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// How the duty stands.
    pub duty: DutyStanding,
    /// What explains it, one thing a line.
    pub lines: Vec<String>,
}

impl Cluster {
    /// What the leader would move if it planned now and were free to rebalance without limits.
    /// Nothing is changed. The strategy is that of the leader if it is a ready-made one; for one
    /// of its own see [`Self::plan_with`] and [`Preview::unknown`].
    ///
    /// # Errors
    /// If the store can't be reached or a record can't be read.
    pub async fn plan(&self) -> Result<Preview, ClusterError> {
        let picture = self.picture().await?;
        let (strategy, unknown) = picture.strategy();
        Ok(Preview { unknown, ..preview(&picture, strategy) })
    }

    /// As [`Self::plan`], if these asks were in force as well, and those were not that the test
    /// picks out.
    ///
    /// # Errors
    /// As there.
    pub async fn plan_if(
        &self,
        asks: Vec<Ask>,
        without: impl Fn(&Ask) -> bool,
    ) -> Result<Preview, ClusterError> {
        let mut picture = self.picture().await?;
        picture.intents.retain(|intent| !without(&intent.ask));
        picture.intents.extend(asks.into_iter().map(super::asks::supposed));
        let (strategy, unknown) = picture.strategy();
        Ok(Preview { unknown, ..preview(&picture, strategy) })
    }

    /// As [`Self::plan`] for another strategy.
    ///
    /// # Errors
    /// As there.
    pub async fn plan_with(&self, strategy: Strategy) -> Result<Preview, ClusterError> {
        Ok(preview(&self.picture().await?, strategy))
    }

    /// Why a duty (`family/name`) runs where it runs, or why it doesn't; nothing if nobody knows
    /// it.
    ///
    /// # Errors
    /// If the name is not valid, the store can't be reached or a record can't be read.
    pub async fn explain(&self, duty: &str) -> Result<Option<Explanation>, ClusterError> {
        let duty = DutyId::parse(duty)?;
        let picture = self.picture().await?;
        if !picture.duties.contains_key(&duty) && picture.holder(&duty).is_none() {
            return Ok(None);
        }
        let standing = picture.standing(&duty);
        let mut lines = vec![standing_line(&standing)];
        lines.extend(picture.ask_lines(&duty));
        lines.extend(picture.avoided_line(&duty));
        lines.extend(picture.version_lines(&duty));
        lines.extend(plan_lines(&picture, &duty));
        Ok(Some(Explanation { duty: standing, lines }))
    }

    /// The last moves of duties, oldest first. Some hundred are kept.
    ///
    /// # Errors
    /// If the store can't be reached or a record can't be read.
    pub async fn moves(&self) -> Result<Vec<Moved>, ClusterError> {
        Ok(self.picture().await?.moves.map(|moves| moves.moves).unwrap_or_default())
    }
}

impl Picture {
    /// How the leader places as far as it can be known here, and what can't.
    fn strategy(&self) -> (Strategy, Option<String>) {
        let moves = self.moves.as_ref();
        let name = moves.map_or("", |moves| moves.strategy.as_str());
        let strategy = if name.is_empty() { Some(Strategy::Even) } else { Strategy::named(name) };
        let mut unknown = Vec::new();
        if !self.unreadable.is_empty() {
            let keys: Vec<&str> = self.unreadable.iter().map(|it| it.key.as_str()).collect();
            unknown.push(format!("also by records that can't be read here ({})", keys.join(", ")));
        }
        if strategy.is_none() {
            unknown.push(format!("by a strategy of its own ({name}), taken for the even one"));
        }
        let own = moves.map_or(&[][..], |moves| &moves.own);
        if !own.is_empty() {
            let families = own.join(", ");
            unknown.push(format!("the families {families} by code of theirs, left out"));
        }
        let said = format!("the leader places {}", unknown.join(", and "));
        (strategy.unwrap_or_default(), (!unknown.is_empty()).then_some(said))
    }

    fn ask_lines(&self, duty: &DutyId) -> Vec<String> {
        let about = |ask: &Ask| match ask {
            Ask::Pin { duty: it, node, required } if it == duty.as_str() => {
                let how = if *required { "nowhere else" } else { "if it fits there" };
                Some(format!("an operator wants it on {node}, {how}"))
            }
            Ask::Pause { duty: it } if it == duty.as_str() => {
                Some("an operator has paused it".to_owned())
            }
            Ask::Move { duty: it, node } if it == duty.as_str() => {
                Some(format!("an operator has asked for it to move to {node}"))
            }
            Ask::Cordon { node } => Some(format!("{node} is cordoned: it gets no more duties")),
            Ask::Drain { node } => Some(format!("{node} is being drained")),
            Ask::Freeze => Some("nothing moves for the sake of evenness: frozen".to_owned()),
            Ask::Hold { family } if family == duty.family() => {
                Some("an operator holds its family back from newer versions".to_owned())
            }
            Ask::Resign { .. }
            | Ask::Pin { .. }
            | Ask::Pause { .. }
            | Ask::Move { .. }
            | Ask::Hold { .. }
            | Ask::Canary { .. }
            | Ask::Promote { .. }
            | Ask::Abort { .. } => None,
        };
        self.asks().filter_map(about).collect()
    }

    fn avoided_line(&self, duty: &DutyId) -> Option<String> {
        let avoided = self.moves.as_ref()?.avoided.get(duty)?;
        let names = avoided.iter().filter_map(|member| self.members.get(member));
        let names: Vec<&str> = names.map(|profile| profile.node.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!("it failed or never started on {}: avoided for a while", names.join(", "))
        })
    }
}

fn standing_line(standing: &DutyStanding) -> String {
    let DutyStanding { id, condition, node, .. } = standing;
    let on = node.as_ref().map_or(String::new(), |node| format!(" on {node}"));
    format!("{id} is {condition}{on}")
}

/// What a plan made now would do with the duty, and why it isn't on each other node.
fn plan_lines(picture: &Picture, duty: &DutyId) -> Vec<String> {
    let (strategy, unknown) = picture.strategy();
    let (_, question, plan) = planned(picture, strategy);
    let at = question.duties.iter().position(|known| known == duty);
    let explained = at.and_then(|at| explain(&question.situation, &plan, at));
    let text = explained.map(|explained| explained.to_string()).unwrap_or_default();
    let lines = text.lines().map(|line| format!("planned: {}", line.trim()));
    lines.chain(unknown.map(|unknown| format!("but {unknown}"))).collect()
}

fn preview(picture: &Picture, strategy: Strategy) -> Preview {
    let (survey, question, plan) = planned(picture, strategy);
    let duty = |at: usize| question.duties.get(at).cloned();
    let moves = plan.moves.iter().filter_map(|step| {
        let node = |at| survey.node_at(&question, at).map(ToOwned::to_owned);
        let (from, to) = (node(step.from), node(step.to));
        Some(PlannedMove { duty: duty(step.duty)?, from, to, why: step.why.to_string() })
    });
    // Of what an operator asked for the planner thinks that it is there already.
    let asked =
        survey.asked_for(&question, &plan).into_iter().map(|(duty, from, to)| PlannedMove {
            duty: duty.clone(),
            from: from.map(ToOwned::to_owned),
            to: Some(to.to_owned()),
            why: ASKED.to_owned(),
        });
    let moves = moves.chain(asked);
    let unplaced = plan.unplaced.iter();
    let unplaced = unplaced.filter_map(|it| Some((duty(it.duty)?, it.reason.to_string())));
    Preview { moves: moves.collect(), unplaced: unplaced.collect(), unknown: None }
}

fn planned(picture: &Picture, strategy: Strategy) -> (Survey, Question, Plan) {
    let policy = Policy { strategy, rebalance: Rebalance::UNLIMITED, ..Policy::default() };
    let survey = picture.basis().survey(policy);
    let PlanAnswer { question, plan, .. } = picture.answer(&survey);
    (survey, question, plan)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

//! One round: join, contend, run the command, free the lease, leave.

use std::time::Duration;

use incumbent::store::{Exchange, Lane, Write};
use incumbent::{Campaign, Event, Leadership, Loss, MemberId, Node, OpenStore, Past};
use incumbent_store_common::absolute;
use incumbent_supervise::{Guard, Layout, Status, Trust, Ward};

use super::candidate::{self, Won};
use super::joining::{self, Patience};
use super::notify::notify;
use super::once::Once;
use super::signals::{self, Signals};
use super::term::{self, Over};
use super::watchdog::Watchdog;
use super::{RunArguments, environment, lost};
use crate::exit::{Code, Failure, Outcome};
use crate::out::plain;
use crate::session::Session;
use crate::span;

/// How long leaving in order may take. The lease is free by then; what remains is housekeeping.
const FAREWELL: Duration = Duration::from_secs(5);

/// What comes after a round.
pub(crate) enum Outlook {
    /// The end, with this code unless all is well.
    Over(Option<Code>),
    /// Another round.
    Again,
}

/// One round.
pub(crate) struct Round<'a> {
    pub(crate) session: &'a Session,
    pub(crate) arguments: &'a RunArguments,
    pub(crate) signals: &'a mut Signals,
    /// Whether there was a round before, whose lease was lost.
    pub(crate) again: bool,
    /// What the node of the round before has seen.
    pub(crate) past: &'a mut Option<Past>,
}

impl Round<'_> {
    /// Plays it.
    pub(crate) async fn play(&mut self) -> Outcome<Outlook> {
        let guard = Guard::prepare(&self.arguments.plan()).map_err(|error| {
            Failure::new(Code::Unsupervised, format!("the command can't be supervised: {error}"))
        })?;
        match guard.layout() {
            Layout::Plain => self.session.detail("supervised by a guardian, without a namespace"),
            Layout::Isolated => self.session.detail("supervised in a PID namespace of its own"),
        }
        let patience = Patience::new(self.arguments, self.again);
        let past = self.past.as_ref();
        let joined = tokio::select! {
            joined = joining::join(self.session, self.arguments, &guard, &patience, past) => joined,
            signal = self.signals.ending() => return Ok(interrupted(signal)),
        };
        let (store, node) = joined?;
        if !self.arguments.no_witness {
            entrust(self.session, &node, guard.trust());
        }
        let patience = patience.of_lease(self.arguments);
        let outlook = self.contend(&node, guard, patience).await;
        notify("STOPPING=1");
        let seen = tokio::time::timeout(FAREWELL, node.past()).await;
        *self.past = seen.ok().flatten().or(self.past.take());
        let member = node.member();
        let left = tokio::time::timeout(FAREWELL, node.leave()).await;
        if let (Ok(Ok(())), Some(member)) = (left, member) {
            forget(&store, &self.session.place.cluster, &member).await;
        }
        outlook
    }

    async fn contend(
        &mut self,
        node: &Node,
        guard: Guard,
        patience: Option<Duration>,
    ) -> Outcome<Outlook> {
        let won = tokio::select! {
            won = candidate::win(self.session, self.arguments, node, patience) => won,
            signal = self.signals.ending() => return Ok(interrupted(signal)),
        };
        self.lead(node, guard, won?).await
    }

    async fn lead(&mut self, node: &Node, mut guard: Guard, won: Won) -> Outcome<Outlook> {
        let Won { lease, slot, leadership, campaign } = won;
        let place = &self.session.place;
        let mut once =
            self.arguments.once_per.map(|interval| Once::new(node, leadership.lease(), interval));
        if let Some(once) = &mut once {
            if let Some(passed) = once.too_early().await? {
                self.session.remark(format!("not due: it ran {} ago", span::text(passed)));
                guard.retire().await;
                give_back(leadership, campaign).await;
                return Ok(Outlook::Over(None));
            }
            once.start();
        }
        let watchdog = self.arguments.watchdog.map(Watchdog::open).transpose()?;
        let mut variables = environment::variables(place, node.name(), &lease, &leadership, slot);
        variables.extend(watchdog.iter().flat_map(Watchdog::variables));
        let handle = leadership.term();
        guard.start(variables.clone(), move || handle.trusted_until());
        let term = leadership.number();
        self.session.detail(format!("{lease} is held in term {term}"));
        notify(&format!("READY=1\nSTATUS=holds {lease} in term {term}"));
        let grace = self.arguments.grace();
        let over =
            term::hold(&leadership, &mut guard, self.signals, grace, watchdog.as_ref()).await;
        // Nothing of the command is left: what follows needs no guardian.
        if let (Some(once), Status::Exited(0), None) = (&once, &over.ending.status, over.lost)
            && leadership.is_held()
            && let Err(failure) = once.succeeded(node.name(), term).await
        {
            self.session.remark(format!("the success could not be noted: {}", failure.message));
        }
        give_back(leadership, campaign).await;
        drop(guard);
        Ok(self.conclude(&lease, term, over, &variables).await)
    }

    /// What the end of a term means.
    async fn conclude(
        &mut self,
        lease: &str,
        term: u64,
        over: Over,
        variables: &[(String, String)],
    ) -> Outlook {
        let again = self.arguments.restart && !over.asked;
        let Some(why) = over.lost else {
            if over.warned && again {
                // It ended because it was told to, and not because it was done.
                let story =
                    "the command was asked to end before a beat got through; starting it again";
                self.session.remark(story);
                return Outlook::Again;
            }
            return Outlook::Over(code(&over.ending.status));
        };
        let said = if why == Loss::Resigned { "given up" } else { "lost" };
        self.session.remark(format!("{} was {said} in term {term}: {why}", plain(lease)));
        let Some(hook) = &self.arguments.on_lost else { return outlook(again) };
        let hook = lost::Hook::start(hook, variables, why);
        let grace = self.arguments.grace();
        let ended = match hook {
            Ok(hook) => hook.ended(self.signals, grace).await,
            Err(problem) => Err(problem),
        };
        match ended {
            Ok(asked) => outlook(again && !asked),
            Err(problem) => {
                self.session.remark(problem);
                outlook(again)
            }
        }
    }
}

/// Has each member that this node becomes closed by the guardian, should this process die.
fn entrust(session: &Session, node: &Node, trust: Trust) {
    // The guardian may be in another directory.
    let (url, cluster) = (absolute(&session.place.url), session.place.cluster.clone());
    let ward = move |member: &MemberId| Ward {
        url: url.clone(),
        cluster: cluster.clone(),
        member: member.as_str().to_owned(),
    };
    let mut notices = node.subscribe();
    tokio::runtime::Handle::current().spawn(async move {
        while let Some(notice) = notices.recv().await {
            let member = match &notice.event {
                Event::State(state) => state.member.as_ref(),
                Event::Joined { member } => Some(member),
                _ => None,
            };
            if let Some(member) = member {
                trust.entrust(ward(member));
            }
        }
    });
}

/// Removes the records of a member that has left. Where nothing but `run` is used, no leader of
/// the cluster does that, and a crontab would leave a member behind each time.
async fn forget(store: &OpenStore, cluster: &str, member: &MemberId) {
    let keys = [incumbent::keys::profile(member), incumbent::keys::member(member)];
    let writes = keys.into_iter().map(Write::Delete).collect();
    let forgetting = store.exchange(cluster, Lane::Change, Exchange { writes, reads: Vec::new() });
    let _ = tokio::time::timeout(FAREWELL, forgetting).await;
}

/// Frees the lease, and waits for that where it is still ours to free.
async fn give_back(leadership: Leadership, campaign: Option<Campaign>) {
    // Withdrawn first, so that the lease isn't won again meanwhile.
    drop(campaign);
    let over = leadership.end().is_some_and(|end| end.abrupt);
    if over {
        drop(leadership);
    } else {
        let _ = leadership.release().await;
    }
}

/// What comes after a lease was lost.
fn outlook(again: bool) -> Outlook {
    if again { Outlook::Again } else { Outlook::Over(Some(Code::Lost)) }
}

fn code(status: &Status) -> Option<Code> {
    match status.code() {
        0 => None,
        code => Some(Code::Command(code)),
    }
}

/// Ended by a signal before there was a command.
fn interrupted(signal: i32) -> Outlook {
    Outlook::Over(Some(signals::code(signal)))
}

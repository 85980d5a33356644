//! The process between holder and command.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use incumbent::clock;

use crate::body::Body;
use crate::channel::Channel;
use crate::ending::{Ending, Status};
use crate::fuse::Fuse;
use crate::message::{Order, Preparation, Report, Ward};
use crate::wake::Wake;
use crate::{sweep, trustee};

/// The signal that asks a command to end.
const TERMINATE: i32 = 15;

/// The holder may take so long to answer a question, or a quarter of the warning if that is less.
const ANSWER_NS: u64 = 100_000_000;
/// So many orders are obeyed before the clock is looked at again.
const ORDERS: usize = 1000;

/// Guards the command until nothing of it is left.
pub(crate) fn run(command: Vec<OsString>) -> ExitCode {
    let Ok(holder) = Channel::inherited() else {
        eprintln!("incumbent: this is started by `incumbent run` and by nobody else");
        return ExitCode::from(64);
    };
    match Guardian::prepare(&holder, command) {
        Ok(Some(mut guardian)) => guardian.guard(&holder),
        Ok(None) => {}
        Err(error) => {
            let _ = holder.send(&Report::Failed(error.to_string()));
        }
    }
    ExitCode::SUCCESS
}

struct Guardian {
    preparation: Preparation,
    /// The holder's process.
    parent: OwnedFd,
    /// What to close in the store, should the holder die.
    ward: Option<Ward>,
    wake: Wake,
    fuse: Fuse,
    body: Body,
    started: bool,
    /// Nothing may run past this moment.
    deadline: u64,
    /// The end of a grace that was given.
    grace: Option<u64>,
    /// Whether the holder was asked once more about the deadline.
    question: Question,
    /// The command was told that the present deadline is near.
    warned: bool,
    /// It was told so of this deadline or a former one: it may end because of that.
    told: bool,
}

/// What the guardian wants to know before it sends a signal because the deadline is near: a beat may
/// have got through, and word of it be on its way.
enum Question {
    Unasked,
    /// Asked; the answer is waited for until this moment.
    Asked(u64),
    /// It is still the same.
    Answered,
}

impl Guardian {
    fn prepare(holder: &Channel, command: Vec<OsString>) -> io::Result<Option<Self>> {
        let _ = rustix::thread::set_name(c"incumbent-guard");
        let parent = trustee::parent()?;
        let wake = Wake::new()?;
        let fuse = Fuse::new()?;
        sweep::adopt_orphans()?;
        let Some((Order::Prepare(preparation), Some(stdin))) = holder.receive()? else {
            return Ok(None);
        };
        let body = Body::prepare(&preparation, command, stdin)?;
        holder.send(&Report::Ready { last: body.last().as_raw_nonzero().get() })?;
        Ok(Some(Self {
            preparation,
            parent,
            ward: None,
            wake,
            fuse,
            body,
            started: false,
            deadline: u64::MAX,
            grace: None,
            question: Question::Unasked,
            warned: false,
            told: false,
        }))
    }

    fn guard(&mut self, holder: &Channel) {
        // Whatever went wrong here, nothing is left behind.
        let overdue = self.watch(holder).unwrap_or(true);
        let status = self.body.end().unwrap_or(Status::KILLED);
        // Without a member that could be closed, nobody looks for a mark.
        if self.body.needs_mark() && self.ward.is_some() {
            let _ = std::fs::File::create_new(&self.preparation.mark);
        }
        if holder.send(&Report::Ended(Ending { status, overdue, warned: self.told })).is_err()
            && let Some(ward) = &self.ward
        {
            let _ = trustee::entrust(ward, &self.parent, &self.preparation.mark);
        }
    }

    /// Watches until all is to end; says whether that is because of the deadline.
    fn watch(&mut self, holder: &Channel) -> io::Result<bool> {
        loop {
            let until = self.started.then(|| self.next_moment());
            let woken = self.wake.wait(until, holder, self.body.channel())?;
            if woken.second {
                self.body.listen();
            }
            if self.body.ended().is_some() {
                return Ok(self.warned);
            }
            if woken.first && !self.hear(holder)? {
                return Ok(self.warned);
            }
            if self.started && self.is_over(holder) {
                return Ok(self.warned || clock::now().as_nanos() >= self.deadline);
            }
        }
    }

    /// Obeys all orders that have come, so that no new deadline waits behind others; says whether to
    /// go on.
    fn hear(&mut self, holder: &Channel) -> io::Result<bool> {
        for _ in 0..ORDERS {
            let Some((order, _)) = holder.receive()? else { return Ok(false) };
            if !self.obey(holder, order)? {
                return Ok(false);
            }
            if !holder.is_ready() {
                break;
            }
        }
        Ok(true)
    }

    fn next_moment(&self) -> u64 {
        let next = match self.question {
            _ if self.warned => self.deadline,
            Question::Asked(until) => until.min(self.deadline),
            Question::Unasked | Question::Answered => self.warning(),
        };
        self.grace.map_or(next, |grace| grace.min(next))
    }

    fn warning(&self) -> u64 {
        self.deadline.saturating_sub(self.preparation.warning_ns)
    }

    /// Warns the command when its time comes near; says whether its time has come.
    fn is_over(&mut self, holder: &Channel) -> bool {
        let now = clock::now().as_nanos();
        if now >= self.warning() && !self.warned {
            match self.question {
                Question::Unasked => {
                    let patience = ANSWER_NS.min(self.preparation.warning_ns / 4);
                    self.question = Question::Asked(now.saturating_add(patience));
                    // A holder that is gone shows elsewhere.
                    let _ = holder.send(&Report::Asking);
                }
                Question::Asked(until) if now < until => {}
                Question::Asked(_) | Question::Answered => {
                    self.warned = true;
                    self.told = true;
                    self.body.signal(TERMINATE);
                }
            }
        }
        now >= self.deadline || self.grace.is_some_and(|grace| now >= grace)
    }

    /// Carries out an order; says whether to go on.
    fn obey(&mut self, holder: &Channel, order: Order) -> io::Result<bool> {
        match order {
            Order::Start { variables, deadline } => {
                if self.started || clock::now().as_nanos() >= deadline {
                    return Ok(self.started);
                }
                // Lit before anything runs.
                self.set(deadline)?;
                self.started = true;
                self.body.start(variables, deadline);
                holder.send(&Report::Started)?;
            }
            Order::Deadline(deadline) if self.started => {
                if deadline > self.deadline {
                    self.question = Question::Unasked;
                    // A command that goes on all the same is warned again, should this come near.
                    self.warned = false;
                    self.set(deadline)?;
                } else if matches!(self.question, Question::Asked(_)) {
                    self.question = Question::Answered;
                }
            }
            Order::Signal(number) => self.body.signal(number),
            Order::Stop { signal, grace_ns } => {
                self.body.signal(signal);
                let grace = clock::now().as_nanos().saturating_add(grace_ns);
                self.grace = Some(self.grace.map_or(grace, |earlier| earlier.min(grace)));
            }
            Order::Kill => return Ok(false),
            Order::Entrust(ward) => self.ward = Some(ward),
            Order::Release => self.ward = None,
            Order::Deadline(_) | Order::Prepare(_) => {}
        }
        Ok(true)
    }

    fn set(&mut self, deadline: u64) -> io::Result<()> {
        self.deadline = deadline;
        self.fuse.light(deadline.saturating_add(self.preparation.fuse_ns))
    }
}

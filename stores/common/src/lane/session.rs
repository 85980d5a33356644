//! What a lane has to know about connections.

use incumbent_core::store::{Reply, StoreError};

use crate::failure::Failure;

/// Makes connections of one kind.
pub trait Connect: Send + Sync + 'static {
    /// What it makes.
    type Session: Session;

    /// A connection that is ready to be used, or why there is none. Ends by itself in a time of
    /// its own, which no request has to wait for.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, StoreError>> + Send;

    /// The server as messages name it.
    fn server(&self) -> String;
}

/// A connection that is set up and known to lead to a server that can be used. Dropping it closes
/// it.
pub trait Session: Send + Sync + 'static {
    /// What it is asked to do.
    type Job: Send + Sync + 'static;

    /// How many jobs it can do at once.
    const AT_ONCE: usize;

    /// Whether [`Session::ended`] tells when an idle connection breaks. Where it can't, a lane uses
    /// its connections in turn: each job that is done shows that one of them still works.
    const WATCHED: bool = true;

    /// Does a job, or says what may have become of it. A server that turns out to be of no use,
    /// such as a primary that was demoted, is a failure after which the session isn't kept.
    fn perform(&self, job: &Self::Job) -> impl Future<Output = Result<Reply, Failure>> + Send;

    /// Gets ready for what it may be asked later, beside its first jobs.
    fn rehearse(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Whether the server still answers.
    fn answers(&self) -> impl Future<Output = bool> + Send;

    /// Whether the connection is known to have ended, so that nothing can be sent over it.
    fn has_ended(&self) -> bool;

    /// Ready once the connection is known to have ended, and never where nothing but a job or
    /// [`Session::answers`] can tell.
    fn ended(&self) -> impl Future<Output = ()> + Send;
}

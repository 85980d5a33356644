//! The NATS JetStream store of incumbent: on the server that the application already runs.
//!
//! # What it needs
//!
//! NATS server 2.9 or later with JetStream, and a key-value bucket, which is made if it is
//! missing and that is allowed ([`NatsOptions::schema_command`] is the command for those who
//! don't allow it, [`NatsOptions::permissions`] the least rights). A bucket that could lose
//! records by its settings is refused: one with a ttl, in memory, or with the discard policy
//! `old`.
//!
//! # What it promises
//!
//! - A write is one message that says which number its subject must have last; the stream's
//!   leader compares. It is sent once. What isn't answered is unknown, and a connection that was
//!   lost is never used again, so nothing is sent a second time when a new one comes up.
//! - A version is the message's number in the stream, which only grows, and a mark of when the
//!   bucket was made.
//! - Reads ask the stream's leader, never a replica.
//! - A deleted record is marked so by compare-and-swap, and then cleared away.
//! - The beat and all that is read with it go out together and take one round trip, on a
//!   connection of their own.
//! - Changes are told on a plain subject after they were acknowledged.
//!
//! # What it can lose
//!
//! A server tells the operating system to write, and has it synced to the disk only every
//! `sync_interval`: two minutes by default. A crash of the process loses nothing; a crash of the
//! machine, or its power, can lose acknowledged writes, and with them leases and terms (F15).
//! Either `sync_interval: always` in the server's `jetstream` block, or three replicas on
//! machines that don't lose power together, avoid that. [`Capabilities::durable`] is therefore
//! false: the store can't see which.
//!
//! [`Capabilities::durable`]: incumbent_core::store::Capabilities::durable

mod api;
mod bucket;
mod connect;
mod error;
mod exchange;
mod facts;
mod hints;
mod keys;
mod login;
mod options;
mod session;
mod store;
mod url;

pub use facts::Facts;
pub use options::NatsOptions;
pub use store::NatsStore;

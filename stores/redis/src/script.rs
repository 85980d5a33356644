//! The script that does an exchange, and what it is given.

use std::sync::LazyLock;

use incumbent_core::store::{Access, Exchange, Expect, Key, Read, Write};
use redis::{Cmd, Script};

use crate::keys::Keys;

const TEXT: &str = include_str!("exchange.lua");

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(TEXT));

/// The call by the script's hash, which the server knows once it has seen the text.
pub(crate) fn by_hash(keys: &Keys, exchange: &Exchange, access: Access) -> Cmd {
    let mut command = command(exchange);
    command.arg("EVALSHA").arg(SCRIPT.get_hash());
    arguments(&mut command, keys, exchange, access);
    command
}

/// The same call with the text.
pub(crate) fn by_text(keys: &Keys, exchange: &Exchange, access: Access) -> Cmd {
    let mut command = command(exchange);
    command.arg("EVAL").arg(TEXT);
    arguments(&mut command, keys, exchange, access);
    command
}

/// A command with room for all of it.
fn command(exchange: &Exchange) -> Cmd {
    let values = exchange.writes.iter().map(|write| match write {
        Write::Put(put) => put.value.len(),
        Write::Delete(_) => 0,
    });
    let count = exchange.writes.len() * 6 + exchange.reads.len() * 3 + 10;
    Cmd::with_capacity(count, values.sum::<usize>() + count * 32)
}

fn arguments(command: &mut Cmd, keys: &Keys, exchange: &Exchange, access: Access) {
    command.arg(2).arg(&keys.records).arg(&keys.index).arg(&keys.channel);
    let deletes = exchange.writes.iter().any(|write| matches!(write, Write::Delete(_)));
    command.arg(exchange.writes.len());
    command.arg(match access {
        Access::Look => "look",
        _ if needs_index(&exchange.writes, deletes) => "index",
        _ => "",
    });
    command.arg(if deletes { "delete" } else { "" });
    for write in &exchange.writes {
        match write {
            Write::Put(put) => {
                let (kind, expected) = match &put.expect {
                    Expect::Absent => ("create", ""),
                    Expect::Version(version) => ("swap", version.as_str()),
                };
                command.arg(kind).arg(put.key.as_str()).arg(put.value.as_slice());
                command.arg(put.stamp.to_string()).arg(expected);
                command.arg(if put.hint { "1" } else { "" });
            }
            Write::Delete(key) => {
                command.arg("delete").arg(key.as_str()).arg("").arg("").arg("").arg("");
            }
        }
    }
    for read in &exchange.reads {
        match read {
            Read::Key { key, unless } => {
                let unless = unless.as_ref().map_or("", |version| version.as_str());
                command.arg("key").arg(key.as_str()).arg(unless);
            }
            Read::Prefix(prefix) => {
                command.arg("prefix").arg(prefix.as_str()).arg("");
            }
        }
    }
}

/// Whether the script has to try the sorted set first: it is about to add to it; or it deletes
/// before it puts, and after a delete Redis no longer asks whether there is memory for a put.
/// Deletes alone need no memory, so that a full server can be cleaned up.
fn needs_index(writes: &[Write], deletes: bool) -> bool {
    writes.iter().any(|write| match write {
        Write::Put(put) => deletes || put.expect == Expect::Absent,
        Write::Delete(_) => false,
    })
}

/// A key that the script would take for a stamp. Those of [`incumbent_core::keys`] never are.
pub(crate) fn impossible_key(exchange: &Exchange) -> Option<&Key> {
    let writes = exchange.writes.iter().map(Write::key);
    let reads = exchange.reads.iter().map(|read| match read {
        Read::Key { key, .. } | Read::Prefix(key) => key,
    });
    writes.chain(reads).find(|key| key.as_str().contains('@'))
}

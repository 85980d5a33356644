//! A key in Redis or Valkey, asked by the script that writes.

use redis::aio::ConnectionLike;
use redis::{Arg, Pipeline, RedisError, Value};

use crate::error::seen;
use crate::{GateError, Token};

const SCRIPT: &str = include_str!("fenced.lua");

/// Runs these commands, all at once and nobody between them, if the gate has seen no higher term; and
/// brings their replies. With an empty pipeline the gate is shown the term and nothing else.
///
/// `gate` is a key of its own, without a time to live. `keys` are those that the commands use: a
/// cluster wants all of them in the slot of the gate, as `{orders}:gate` and `{orders}:totals` are.
/// If a command fails, those before it stay done, as in any script.
///
/// What Redis loses at a failover it loses of the gate too: with `WAIT`, or `appendfsync always` on
/// one server, less.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term: then nothing was run.
pub async fn admit(
    connection: &mut impl ConnectionLike,
    gate: &str,
    token: &Token,
    keys: &[&str],
    commands: &Pipeline,
) -> Result<Vec<Value>, GateError<RedisError>> {
    let mut call = redis::cmd("EVAL");
    call.arg(SCRIPT).arg(1 + keys.len()).arg(gate).arg(keys).arg(token.term().to_string());
    for command in commands.cmd_iter() {
        call.arg(command.args_iter().count());
        for word in command.args_iter() {
            match word {
                Arg::Simple(bytes) => call.arg(bytes),
                // The place of a cursor in a scan, which is no command to write with.
                _ => call.arg("0"),
            };
        }
    }
    let (verdict, detail): (String, Value) =
        call.query_async(connection).await.map_err(GateError::Unreachable)?;
    match (verdict.as_str(), detail) {
        ("admitted", Value::Array(replies)) => Ok(replies),
        ("superseded", Value::BulkString(term)) => {
            Err(GateError::Superseded { term: seen(&term)? })
        }
        (_, Value::BulkString(found)) => {
            Err(GateError::Unreadable(String::from_utf8_lossy(&found).into_owned()))
        }
        (verdict, _) => Err(GateError::Unreadable(verdict.to_owned())),
    }
}

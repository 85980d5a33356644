//! The bucket: what it has to be like, and how it is made.

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::Sent;

use crate::api::{ApiError, Config, Info};
use crate::error::{Trouble, answered, denied, nonsense, unanswered};
use crate::keys;
use crate::options::NatsOptions;
use crate::session::Session;

/// The largest record that incumbent writes is 64 kB, and there are headers beside it.
const ROOM: i64 = 70_000;

/// A few past values are of use to an operator; more would only take room.
const LONGEST_HISTORY: i64 = 64;

/// Finds the bucket or makes it, and says when it was made. Who only looks makes none, and can do
/// no harm in one that isn't fit.
pub(crate) async fn prepare(session: &Session, options: &NatsOptions) -> Result<Info, StoreError> {
    let looks = options.access == Access::Look;
    let info = match session.info(None, None).await? {
        Ok(info) if looks => return Ok(info),
        Err(error) if looks && error.err_code == ApiError::NO_STREAM => return Ok(Info::default()),
        Ok(info) => info,
        Err(error) if error.err_code == ApiError::NO_STREAM => create(session, options).await?,
        Err(error) => return Err(answered(options, &error, Sent::Nothing)),
    };
    match objection(&info.config, options) {
        None => Ok(info),
        Some(why) => Err(StoreError::rejected(format!(
            "{}: the bucket can't be used: {why}. Correct it, or choose another bucket= and \
             run: {}",
            options.shown(),
            command(options)
        ))),
    }
}

async fn create(session: &Session, options: &NatsOptions) -> Result<Info, StoreError> {
    let config = wanted(options);
    let body = serde_json::to_vec(&config).map_err(|_| nonsense(options, Sent::Nothing))?;
    let subject = format!("$JS.API.STREAM.CREATE.{}", config.name);
    let answer = match session.ask::<Info>(&subject, body).await {
        Ok(answer) => answer,
        Err(Trouble::Denied(why)) => {
            return Err(StoreError::rejected(format!(
                "{}: there is no such bucket, and this user may not make it ({why}). Run: {}",
                options.shown(),
                command(options)
            )));
        }
        Err(trouble) => return Err(unanswered(options, trouble, Sent::Nothing)),
    };
    match answer {
        Ok(info) => Ok(info),
        // Somebody else made it in between, a little differently.
        Err(Some(error)) if error.err_code == ApiError::NAME_IN_USE => {
            let info = session.info(None, None).await?;
            info.map_err(|error| answered(options, &error, Sent::Nothing))
        }
        Err(Some(error)) => Err(answered(options, &error, Sent::Nothing)),
        Err(None) => Err(nonsense(options, Sent::Nothing)),
    }
}

fn wanted(options: &NatsOptions) -> Config {
    Config {
        name: keys::stream(&options.bucket),
        subjects: vec![keys::all(&options.bucket)],
        num_replicas: options.replicas,
        ..Config::default()
    }
}

/// Why a bucket isn't fit. What it may lose by these settings are leases, and their terms with
/// them, which would start again (F8).
fn objection(config: &Config, options: &NatsOptions) -> Option<String> {
    let subjects = keys::all(&options.bucket);
    let say = |why: &str| Some(why.to_owned());
    if config.mirror.is_some() || !config.subjects.contains(&subjects) {
        return Some(format!("it doesn't take what is written to {subjects}, as a mirror doesn't"));
    }
    if config.max_age != 0 {
        return say("it has a ttl, which would delete leases and their terms with them");
    }
    if config.storage != "file" {
        return say("it is kept in memory, and would be empty after a restart of the server");
    }
    if config.retention != "limits" {
        return Some(format!("its retention is {:?}, which deletes records", config.retention));
    }
    if config.discard != "new" {
        return say("its discard policy is \"old\", which deletes records when a limit is reached");
    }
    if config.discard_new_per_subject {
        return say("it refuses new values of a key that has one");
    }
    if !(1..=LONGEST_HISTORY).contains(&config.max_msgs_per_subject) {
        return Some(format!(
            "it keeps {} values of a key; it may keep 1 to {LONGEST_HISTORY}",
            config.max_msgs_per_subject
        ));
    }
    if config.no_ack {
        return say("it acknowledges nothing");
    }
    if config.sealed || config.deny_purge {
        return say("records can't be removed from it");
    }
    if config.persist_mode == "async" {
        return say("it acknowledges before it writes");
    }
    if (0..ROOM).contains(&config.max_msg_size) {
        return Some(format!("its largest value is {} bytes", config.max_msg_size));
    }
    None
}

/// The command that makes the bucket.
pub(crate) fn command(options: &NatsOptions) -> String {
    let NatsOptions { bucket, replicas, .. } = options;
    format!("nats kv add {bucket} --history=1 --storage=file --replicas={replicas}")
}

/// The least rights, as the server's configuration has them.
pub(crate) fn permissions(options: &NatsOptions) -> String {
    let NatsOptions { bucket, inbox, hints, .. } = options;
    let stream = keys::stream(bucket);
    let looks = options.access == Access::Look;
    let mut publish = Vec::new();
    let mut requests = vec!["INFO", "MSG.GET"];
    if !looks {
        publish.push(keys::all(bucket));
        requests.extend(["PURGE", "CREATE"]);
    }
    for request in requests {
        publish.push(format!("$JS.API.STREAM.{request}.{stream}"));
    }
    let mut subscribe = vec![format!("{inbox}.>")];
    if *hints && !looks {
        publish.push(keys::hint(bucket, "*"));
    }
    if *hints {
        subscribe.push(keys::hint(bucket, "*"));
    }
    let quoted = |subjects: Vec<String>| {
        subjects.iter().map(|subject| format!("\"{subject}\"")).collect::<Vec<_>>().join(", ")
    };
    format!("permissions: {{ publish: [{}], subscribe: [{}] }}", quoted(publish), quoted(subscribe))
}

/// Whether the server takes messages as large as a record may be.
pub(crate) fn check_room(options: &NatsOptions, most: usize) -> Result<(), StoreError> {
    if i64::try_from(most).is_ok_and(|most| most < ROOM) {
        return Err(StoreError::rejected(format!(
            "{}: the server takes messages of {most} bytes at most, and {ROOM} are needed: raise \
             max_payload in its configuration",
            options.shown()
        )));
    }
    Ok(())
}

/// Says that JetStream is missing, where nobody answered the first question.
pub(crate) fn without_jetstream(options: &NatsOptions) -> StoreError {
    StoreError::rejected(format!(
        "{}: nobody answers for JetStream. Start the server with it (nats-server -js, or \
         jetstream {{}} in its configuration), and allow it for this account",
        options.shown()
    ))
}

/// The error for a request of the set-up that had no answer.
pub(crate) fn unprepared(options: &NatsOptions, trouble: Trouble) -> StoreError {
    match trouble {
        Trouble::Denied(why) => denied(options, &why),
        other => unanswered(options, other, Sent::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_lose_leases_is_refused() {
        let options = NatsOptions::new("a:4222").bucket("b");
        let good = wanted(&options);
        assert_eq!(objection(&good, &options), None);
        let bad = |change: fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            objection(&config, &options).expect("an objection")
        };
        assert!(bad(|config| config.max_age = 1).contains("ttl"));
        assert!(bad(|config| config.storage = "memory".into()).contains("memory"));
        assert!(bad(|config| config.discard = "old".into()).contains("discard"));
        assert!(bad(|config| config.retention = "interest".into()).contains("retention"));
        assert!(bad(|config| config.max_msgs_per_subject = -1).contains("values"));
        assert!(bad(|config| config.deny_purge = true).contains("removed"));
        assert!(bad(|config| config.no_ack = true).contains("acknowledges"));
        assert!(bad(|config| config.max_msg_size = 1000).contains("largest"));
        assert!(bad(|config| config.subjects.clear()).contains("$KV.b.>"));
        assert!(bad(|config| config.persist_mode = "async".into()).contains("before"));
    }
}

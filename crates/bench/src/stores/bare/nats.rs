use anyhow::{Context as _, Result};
use async_nats::{Client, HeaderMap};
use serde_json::Value;

use super::{Bare, Connecting, Swapping, fresh, value};

/// A message in the store's bucket that says which number its subject must have last.
pub(crate) struct Nats {
    client: Client,
    subject: String,
    last: u64,
}

impl Nats {
    /// The bucket must be there already.
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let base = url.split('?').next().unwrap_or(url);
            let client = async_nats::connect(base).await?;
            let subject = format!("$KV.incumbent.{}", fresh());
            Ok(Box::new(Self { client, subject, last: 0 }) as Box<dyn Bare>)
        })
    }

    async fn publish(&mut self) -> Result<()> {
        let mut headers = HeaderMap::new();
        let last = self.last.to_string();
        headers.insert("Nats-Expected-Last-Subject-Sequence", last.as_str());
        let content = value(self.last).into();
        let answer =
            self.client.request_with_headers(self.subject.clone(), headers, content).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        let number = answer.get("seq").and_then(Value::as_u64);
        self.last = number.with_context(|| format!("it was not swapped: {answer}"))?;
        Ok(())
    }
}

impl Bare for Nats {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.publish())
    }
}

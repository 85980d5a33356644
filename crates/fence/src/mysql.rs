use std::future::Future;
use std::pin::Pin;

use incumbent::Assertion;
use mysql_async::prelude::Queryable;
use mysql_async::{Error, Transaction};

use crate::error::SUPERSEDED;
use crate::{FenceError, private, statement};

impl private::Sealed for &mut Transaction<'_> {}

impl<'a> crate::Transaction for &'a mut Transaction<'_> {
    type Answer = Pin<Box<dyn Future<Output = Result<(), FenceError<Error>>> + Send + 'a>>;

    fn assert(self, assertion: Assertion) -> Self::Answer {
        Box::pin(async move {
            let sql = statement(&assertion, "mysql")?;
            let Assertion { cluster, lease, term, .. } = assertion;
            match self.exec_drop(sql, (cluster, lease, term)).await {
                Ok(()) => Ok(()),
                Err(Error::Server(said)) if said.state == SUPERSEDED => {
                    Err(FenceError::superseded(&said.message))
                }
                Err(error) => Err(FenceError::Database(error)),
            }
        })
    }
}

use std::future::Future;
use std::pin::Pin;

use incumbent::Assertion;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Transaction};

use crate::error::SUPERSEDED;
use crate::{FenceError, private, statement};

impl private::Sealed for &Transaction<'_> {}

impl<'a> crate::Transaction for &'a Transaction<'_> {
    type Answer = Pin<Box<dyn Future<Output = Result<(), FenceError<Error>>> + Send + 'a>>;

    fn assert(self, assertion: Assertion) -> Self::Answer {
        Box::pin(async move {
            let sql = statement(&assertion, "postgres")?;
            let Assertion { cluster, lease, term, .. } = &assertion;
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
                [(cluster, Type::TEXT), (lease, Type::TEXT), (term, Type::INT8)];
            match self.query_typed(&sql, &parameters).await {
                Ok(_) => Ok(()),
                Err(error) => Err(match error.as_db_error() {
                    Some(said) if said.code().code() == SUPERSEDED => {
                        FenceError::superseded(said.message())
                    }
                    _ => FenceError::Database(error),
                }),
            }
        })
    }
}

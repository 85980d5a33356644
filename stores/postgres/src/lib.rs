//! The PostgreSQL store of incumbent: on the database that the application already runs.

mod answer;
mod error;
mod exchange;
mod facts;
mod fence;
mod hints;
mod lane;
mod locked;
mod names;
mod opener;
mod options;
mod password;
mod schema;
mod session;
mod statement;
mod store;
mod tls;
mod url;

pub use facts::Facts;
pub use options::{Pooler, PostgresOptions};
pub use store::PostgresStore;

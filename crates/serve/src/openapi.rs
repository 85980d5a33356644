//! The OpenAPI document, made of the table of routes.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::access::Role;
use crate::call::{Answer, Call, json as answer};
use crate::document::Schemas;
use crate::problem;
use crate::route::{CLUSTER, Route};
use crate::routes;

/// `GET /openapi.json`.
pub(crate) async fn show(call: Call) -> Answer {
    call.know(&[])?;
    Ok(answer(StatusCode::OK, &document(&routes::table())))
}

/// What describes this table.
pub(crate) fn document(table: &[Route]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Schemas::new());
    for route in table {
        let operation = operation(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.as_str().to_lowercase(), operation);
        }
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "incumbent",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Leases, members and duties of a cluster. docs/http.md describes it for people.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "certificate": { "type": "mutualTLS" },
            },
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for (status, shape, said) in &route.answers {
        let mut response = json!({ "description": said });
        if let (Some(shape), Some(fields)) = (shape, response.as_object_mut()) {
            let content = json!({ "application/json": { "schema": shape(schemas) } });
            fields.insert("content".to_owned(), content);
        }
        if let (None, 200, Some(fields)) = (shape, status, response.as_object_mut()) {
            fields.insert("content".to_owned(), plain(route));
        }
        responses.insert(status.to_string(), response);
    }
    for status in problems(route) {
        let kinds = problem::ALL.iter().filter(|kind| kind.status == status);
        let codes: Vec<&str> = kinds.map(|kind| kind.code).collect();
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let problem = json!({
            "description": codes.join(", "),
            "content": { "application/problem+json": { "schema": schema } },
        });
        let known = responses.entry(status.to_string()).or_insert_with(|| problem.clone());
        // A status may have a document of its own beside the problem.
        if let (Some(known), Some(content)) = (known.get_mut("content"), problem.get("content"))
            && let (Some(known), Some(content)) = (known.as_object_mut(), content.as_object())
        {
            known.extend(content.clone());
        }
    }
    let mut operation = json!({
        "summary": route.summary,
        "operationId": id(route),
        "parameters": parameters(route),
        "responses": responses,
    });
    if let Some(fields) = operation.as_object_mut() {
        if let Some(shape) = route.body {
            let content = json!({ "application/json": { "schema": shape(schemas) } });
            fields
                .insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        if let Some(role) = route.role {
            fields
                .insert("security".to_owned(), json!([{ "token": [] }, { "certificate": [] }, {}]));
            fields.insert("x-role".to_owned(), role.as_str().into());
        }
    }
    operation
}

/// What is answered as something else than a document.
fn plain(route: &Route) -> Value {
    let kinds: &[&str] = match route.path {
        "/metrics" => &[prometheus::TEXT_FORMAT],
        "/page/{file}" => {
            &["text/css; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"]
        }
        "/v1/events" => &["text/event-stream"],
        _ => &["application/x-ndjson", "text/event-stream"],
    };
    let text = json!({ "schema": { "type": "string" } });
    kinds.iter().map(|kind| ((*kind).to_owned(), text.clone())).collect::<Map<_, _>>().into()
}

/// The statuses of problems that a request may meet.
fn problems(route: &Route) -> Vec<u16> {
    let mut statuses = vec![400, 421];
    statuses.extend(route.problems);
    if route.any_cluster {
        statuses.push(404);
    }
    if route.role.is_some() {
        statuses.extend([401, 403]);
    }
    if route.role > Some(Role::ReadOnly) {
        statuses.extend([408, 413]);
    }
    if route.body.is_some() {
        statuses.push(415);
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn parameters(route: &Route) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let text = json!({ "type": "string" });
    let path = names.map(|name| {
        let named = json!({ "type": "string", "minLength": 1 });
        json!({ "name": name, "in": "path", "required": true, "schema": named })
    });
    let cluster = route.any_cluster.then_some(&CLUSTER);
    let query = route.query.iter().chain(cluster).map(
        |(name, said)| json!({ "name": name, "in": "query", "description": said, "schema": text }),
    );
    path.chain(query).collect()
}

fn id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.filter(|word| *word != "v1").collect();
    let method = route.method.as_str().to_lowercase();
    format!("{method}_{}", if words.is_empty() { "root".to_owned() } else { words.join("_") })
}

fn problem_schema() -> Value {
    let codes: Vec<&str> = problem::ALL.iter().map(|kind| kind.code).collect();
    json!({
        "type": "object",
        "description": "RFC 9457",
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "what happened and what to do next" },
            "code": { "type": "string", "enum": codes },
            "changed": { "type": "string", "enum": ["no", "unknown"] },
        },
        "required": ["type", "title", "status", "detail", "code", "changed"],
        "additionalProperties": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_and_id_is_there_once() {
        let table = routes::table();
        let document = document(&table);
        let text = document.to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name]["type"].is_string(), "{name}");
        }
        let mut ids: Vec<String> = table.iter().map(id).collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
    }

    /// What people read names the same paths and codes as what machines read.
    #[test]
    fn the_page_for_people_names_every_path_and_every_code() {
        let page = include_str!("../../../docs/http.md");
        for route in routes::table() {
            let path = route.path;
            assert!(page.contains(path), "docs/http.md doesn't name {path}");
        }
        for kind in problem::ALL {
            let row = format!("| {} | `{}` |", kind.status, kind.code);
            assert!(page.contains(&row), "docs/http.md has no row {row}");
        }
    }
}

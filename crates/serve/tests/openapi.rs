//! What `/openapi.json` says is what is answered.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code")]

mod common;

use std::time::Duration;

use common::{Server, text};
use serde_json::{Value, json};

/// Says what of a value isn't as its schema wants it: as much of JSON Schema as the document uses.
fn flaws(document: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/components/schemas/");
        let schema = &document["components"]["schemas"][name];
        assert!(schema.is_object(), "{name} isn't defined");
        return flaws(document, schema, value, at, found);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |schema: &Value| {
            let mut inner = Vec::new();
            flaws(document, schema, value, at, &mut inner);
            inner.is_empty()
        };
        if !any.iter().any(fits) {
            found.push(format!("{at} fits none of its schemas: {value}"));
        }
        return;
    }
    let right = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    if !right {
        found.push(format!("{at} is not {}: {value}", schema["type"]));
    }
    for item in value.as_array().into_iter().flatten() {
        flaws(document, &schema["items"], item, &format!("{at}[]"), found);
    }
    let Some(fields) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(required.as_str().unwrap()) {
            found.push(format!("{at} lacks {required}"));
        }
    }
    for (name, value) in fields {
        let known = &schema["properties"][name];
        let inner = if known.is_object() { known } else { &schema["additionalProperties"] };
        if schema["properties"].is_object() && !known.is_object() && !at.starts_with("problem") {
            found.push(format!("{at}.{name} isn't described"));
        }
        if inner.is_object() {
            flaws(document, inner, value, &format!("{at}.{name}"), found);
        }
    }
}

#[test]
fn every_answer_is_as_the_document_describes_it() {
    let server = Server::new(Duration::from_secs(600));
    let document = server.get("/openapi.json").json();
    assert_eq!(text(&document, "openapi"), "3.1.0");
    let held = server.ask("POST", "/v1/leases/x/acquire", Some(json!({ "name": "a" }))).json();
    let hold = text(&held, "hold").to_owned();
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        if path == "/v1/events"
            || path.ends_with("/hold")
            || path.ends_with("/serve")
            || path.starts_with("/page/")
        {
            // Streams and files.
            continue;
        }
        let filled = path
            .replace("{lease}", "x")
            .replace("/holds/{id}", &format!("/holds/{hold}"))
            .replace("{id}", "nobody")
            .replace("{duty}", "work%2Fa")
            .replace("{node}", "nobody");
        // What ends the hold comes last.
        let mut methods: Vec<(&String, &Value)> = methods.as_object().unwrap().iter().collect();
        methods.sort_by_key(|(method, _)| method.as_str() == "delete");
        for (method, operation) in methods {
            if path.starts_with("/v1/holds/{id}") && method == "delete" {
                continue;
            }
            let body = operation.get("requestBody").map(|_| match path.as_str() {
                _ if path.ends_with("/pin") => json!({ "node": "n" }),
                _ if path.ends_with("/move") || path.ends_with("/transfer") => json!({ "to": "n" }),
                _ if path.ends_with("/acquire") => json!({ "name": "b", "wait": false }),
                _ => json!({}),
            });
            let reply = server.ask(&method.to_uppercase(), &filled, body);
            let at = format!("{method} {path} -> {}", reply.status);
            let described = &operation["responses"][reply.status.to_string()];
            assert!(described.is_object(), "{at} isn't described: {}", reply.text);
            if reply.status == 204 {
                assert_eq!(reply.text, "", "{at}");
                continue;
            }
            let kind = &reply.headers["content-type"];
            let schema = &described["content"][kind]["schema"];
            assert!(schema.is_object(), "{at}: {kind} isn't described");
            let (mut found, label) =
                (Vec::new(), if kind.contains("problem") { "problem" } else { "it" });
            let said = if kind.contains("json") { reply.json() } else { json!(reply.text) };
            flaws(&document, schema, &said, label, &mut found);
            assert!(found.is_empty(), "{at}: {found:?}");
            asked += 1;
        }
    }
    assert!(asked >= 30, "only {asked} were asked");
}

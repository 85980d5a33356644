//! Documents that describe themselves: what is answered and what is read, and its schema, in one place.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The schemas that were named so far.
pub(crate) type Schemas = Map<String, Value>;

/// Something whose JSON has a schema.
pub(crate) trait Schema {
    /// Whether a request may leave it out.
    const OPTIONAL: bool = false;

    /// The schema; what has a name is put among the others and referred to.
    fn schema(schemas: &mut Schemas) -> Value;
}

macro_rules! plain {
    ($($type:ty => $schema:expr;)*) => {
        $(impl Schema for $type {
            fn schema(_: &mut Schemas) -> Value {
                $schema
            }
        })*
    };
}

plain! {
    String => json!({ "type": "string" });
    &'static str => json!({ "type": "string" });
    bool => json!({ "type": "boolean" });
    u8 => json!({ "type": "integer", "minimum": 0, "maximum": 255 });
    u16 => json!({ "type": "integer", "minimum": 0, "maximum": 65535 });
    u32 => json!({ "type": "integer", "minimum": 0 });
    u64 => json!({ "type": "integer", "minimum": 0 });
    usize => json!({ "type": "integer", "minimum": 0 });
    Value => json!({});
}

impl<T: Schema> Schema for Option<T> {
    const OPTIONAL: bool = true;

    fn schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [T::schema(schemas), { "type": "null" }] })
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "array", "items": T::schema(schemas) })
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(schemas) })
    }
}

/// Defines an answer, all of whose fields are always there.
macro_rules! answer {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $said:literal])+ $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq, serde::Serialize)]
            pub(crate) struct $name { $($(#[doc = $said])+ pub(crate) $field: $type,)* }
            $crate::document::described!($name, ($($doc)+), all, $($field, ($($said)+), $type;)*);
        )*
    };
}

/// Defines what a request has for a body: a field that is an `Option` may be left out, one that isn't
/// known is refused.
macro_rules! request {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $said:literal])+ $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(crate) struct $name { $($(#[doc = $said])+ pub(crate) $field: $type,)* }
            $crate::document::described!($name, ($($doc)+), given, $($field, ($($said)+), $type;)*);
        )*
    };
}

macro_rules! described {
    ($name:ident, ($($doc:literal)+), $which:ident, $($field:ident, ($($said:literal)+), $type:ty;)*) => {
        impl $crate::document::Schema for $name {
            fn schema(schemas: &mut $crate::document::Schemas) -> serde_json::Value {
                if !schemas.contains_key(stringify!($name)) {
                    // Put there first, for documents that hold others of their kind.
                    schemas.insert(stringify!($name).to_owned(), serde_json::Value::Null);
                    let fields: Vec<$crate::document::Field> = vec![$($crate::document::Field {
                        name: stringify!($field),
                        said: concat!($($said),+),
                        optional: <$type as $crate::document::Schema>::OPTIONAL,
                        schema: <$type as $crate::document::Schema>::schema(schemas),
                    }),*];
                    let whole = $crate::document::object(
                        concat!($($doc),+),
                        fields,
                        $crate::document::Needed::$which(),
                    );
                    schemas.insert(stringify!($name).to_owned(), whole);
                }
                serde_json::json!({
                    "$ref": concat!("#/components/schemas/", stringify!($name))
                })
            }
        }
    };
}

pub(crate) use {answer, described, request};

/// One field of a document.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) said: &'static str,
    pub(crate) optional: bool,
    pub(crate) schema: Value,
}

/// Which fields have to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// All of them: what isn't there is null.
    All,
    /// Those that aren't optional, and no others than are named.
    Some,
}

impl Needed {
    pub(crate) fn all() -> Self {
        Self::All
    }

    pub(crate) fn given() -> Self {
        Self::Some
    }
}

/// The schema of an object.
pub(crate) fn object(said: &str, fields: Vec<Field>, needed: Needed) -> Value {
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| needed == Needed::All || !field.optional)
        .map(|field| field.name)
        .collect();
    let mut properties = Map::new();
    for field in fields {
        let mut schema = field.schema;
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), field.said.trim().into());
        }
        properties.insert(field.name.to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": said.trim(),
        "properties": properties,
        "required": required,
        "additionalProperties": needed == Needed::All,
    })
}

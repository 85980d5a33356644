//! The names in a certificate.

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The common name, in a subject.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The names in a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Its subject as people read it; the first of its other names if it has none.
    pub(super) subject: String,
    /// All that may be given a role.
    pub(super) all: Vec<String>,
}

impl Names {
    /// Reads them. Nothing if the certificate can't be read or names nobody: nobody could tell who it was.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
        let subject = &certificate.subject;
        let parts = subject.0.iter().flat_map(|part| part.0.iter());
        let mut all: Vec<String> = parts.filter_map(common_name).collect();
        let others = certificate.get::<SubjectAltName>().ok()?;
        let others = others.map(|(_, SubjectAltName(others))| others).unwrap_or_default();
        all.extend(others.iter().filter_map(other_name));
        let subject = if subject.0.is_empty() { all.first()?.clone() } else { subject.to_string() };
        Some(Self { subject: shown(&subject), all })
    }
}

fn common_name(part: &AttributeTypeAndValue) -> Option<String> {
    let value = &part.value;
    let name = (value.decode_as::<Utf8StringRef<'_>>().map(|name| name.as_str().to_owned()))
        .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|it| it.as_str().to_owned()))
        .or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|it| it.as_str().to_owned()));
    name.ok().filter(|_| part.oid == COMMON_NAME).map(|name| format!("cn:{name}"))
}

fn other_name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(format!("dns:{}", name.as_str().to_ascii_lowercase())),
        GeneralName::Rfc822Name(name) => Some(format!("email:{}", name.as_str())),
        GeneralName::UniformResourceIdentifier(name) => Some(format!("uri:{}", name.as_str())),
        GeneralName::OtherName(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::IpAddress(_)
        | GeneralName::RegisteredId(_) => None,
    }
}

/// Without what moves cursors and turns lines around.
fn shown(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let keep = |c: char| if c.is_control() || turns(c) { '\u{fffd}' } else { c };
    text.chars().map(keep).take(LONGEST).collect()
}

/// A subject is cut past this.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn names(subject: &[(DnType, &str)], others: Vec<SanType>) -> Option<Names> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.subject_alt_names = others;
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Names::of(certificate.der())
    }

    #[test]
    fn all_names_are_read_and_each_says_what_it_is() {
        let subject = [(DnType::OrganizationName, "Shop, Inc."), (DnType::CommonName, "alice")];
        let others = vec![
            SanType::DnsName("Billing.Internal".try_into().unwrap()),
            SanType::URI("spiffe://corp/billing".try_into().unwrap()),
            SanType::Rfc822Name("alice@corp.example".try_into().unwrap()),
            SanType::IpAddress([10, 0, 0, 1].into()),
        ];
        let read = names(&subject, others.clone()).unwrap();
        assert_eq!(read.subject, "CN=alice,O=Shop\\, Inc.");
        let three =
            ["dns:billing.internal", "uri:spiffe://corp/billing", "email:alice@corp.example"];
        assert_eq!(read.all, [&["cn:alice"], &three[..]].concat());
        let read = names(&[], others).unwrap();
        assert_eq!((read.subject.as_str(), read.all.len()), ("dns:billing.internal", 3));
    }

    #[test]
    fn what_names_nobody_or_is_no_certificate_is_nobody() {
        assert_eq!(names(&[], Vec::new()), None);
        assert_eq!(Names::of(&CertificateDer::from(b"garbage".to_vec())), None);
    }

    #[test]
    fn a_subject_moves_no_cursor() {
        let read = names(&[(DnType::CommonName, "a\u{1b}[31m\u{202e}b")], Vec::new()).unwrap();
        assert!(!read.subject.contains(['\u{1b}', '\u{202e}']), "{}", read.subject);
    }
}

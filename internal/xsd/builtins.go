package xsd

// builtins are the 44 built-in types and anySimpleType, with the type each is derived from, and the
// item of those that are lists.
var builtins = map[string]string{
	"anySimpleType": "", "string": "", "boolean": "", "decimal": "", "float": "", "double": "", "duration": "",
	"dateTime": "", "time": "", "date": "", "gYearMonth": "", "gYear": "", "gMonthDay": "", "gDay": "", "gMonth": "",
	"hexBinary": "", "base64Binary": "", "anyURI": "", "QName": "", "NOTATION": "", "normalizedString": "string",
	"token": "normalizedString", "language": "token", "NMTOKEN": "token", "Name": "token", "NCName": "Name",
	"ID": "NCName", "IDREF": "NCName", "ENTITY": "NCName", "integer": "decimal", "nonPositiveInteger": "integer",
	"negativeInteger": "nonPositiveInteger", "long": "integer", "int": "long", "short": "int", "byte": "short",
	"nonNegativeInteger": "integer", "unsignedLong": "nonNegativeInteger", "unsignedInt": "unsignedLong",
	"unsignedShort": "unsignedInt", "unsignedByte": "unsignedShort", "positiveInteger": "nonNegativeInteger",
	"NMTOKENS": "", "IDREFS": "", "ENTITIES": "",
}

// primitive is the primitive type that a built-in type is derived from.
func primitive(builtin string) string {
	for builtins[builtin] != "" {
		builtin = builtins[builtin]
	}
	return builtin
}

// isBuiltin reports whether a built-in type is another one, or is derived from it.
func isBuiltin(t, from string) bool {
	for t != "" && t != from {
		t = builtins[t]
	}
	return t != ""
}

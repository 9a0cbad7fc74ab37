package typed

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xsd"
)

// builtinTypes are the types of values in shapes by built-in types of XML Schema; those that are
// not here are text. What is not in range or in another form than usual costs an exception, and
// comes back all the same.
var builtinTypes = map[string]shape.Type{
	"boolean": shape.TypeBoolean, "decimal": shape.TypeDecimal, "float": shape.TypeFloat, "double": shape.TypeFloat,
	"dateTime": shape.TypeDateTime, "hexBinary": shape.TypeHex, "base64Binary": shape.TypeBase64,
	"integer": shape.TypeInt, "nonPositiveInteger": shape.TypeInt, "negativeInteger": shape.TypeInt,
	"long": shape.TypeInt, "int": shape.TypeInt, "short": shape.TypeInt, "byte": shape.TypeInt,
	"nonNegativeInteger": shape.TypeInt, "positiveInteger": shape.TypeInt, "unsignedLong": shape.TypeInt,
	"unsignedInt": shape.TypeInt, "unsignedShort": shape.TypeInt, "unsignedByte": shape.TypeInt,
}

// typeOf is the type in shapes of a simple type.
func typeOf(s *xsd.Simple) shape.Type {
	if s == nil || s.Variety != xsd.Atomic {
		return shape.TypeText
	}
	return builtinTypes[s.Builtin]
}

package capture

import (
	"io"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxInfoset is the longest body in Fast Infoset that is made XML, in bytes.
const maxInfoset = 64 << 20

// writeInfoset writes the XML text of a body in Fast Infoset. One that is not there as a whole is
// converted as far as it goes.
func writeInfoset(to, body *spool.Spooled, whole bool, most int64) error {
	doc, err := io.ReadAll(io.LimitReader(body.Reader(), maxInfoset))
	if err != nil {
		return err
	}
	r := fastinfoset.Reader{Limits: fastinfoset.Limits{TextBytes: most}}
	r.Reset(doc)
	_, err = io.Copy(to, fastinfoset.NewTextReader(&r))
	if to.Len() > 0 && (!whole || int64(len(doc)) < body.Len()) {
		err = nil
	}
	return err
}

func isFastInfoset(contentType string) bool {
	kind := soap.ParseContentType(contentType).Type
	return kind == "application/fastinfoset" || kind == "application/soap+fastinfoset"
}

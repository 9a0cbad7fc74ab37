//go:build interop

package xsd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// verdicts matches what xmllint prints of each file.
var verdicts = regexp.MustCompile(`(?m)^(\S+) (validates|fails to validate)$`)

// TestInteropXmllintDerivations: the verdicts of TestDerivations are those of xmllint.
func TestInteropXmllintDerivations(t *testing.T) {
	tool := shared.Program(t, "xmllint")
	for _, tc := range append(redefining(), blocking()...) {
		t.Run(tc.what, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				return path
			}
			for name, text := range tc.files {
				write(name, text)
			}
			args := []string{"--nonet", "--noout", "--schema", filepath.Join(dir, "a.xsd")}
			messages := append(append([]string{e("", "")}, tc.good...), tc.bad...)
			for i, m := range messages {
				args = append(args, write(fmt.Sprintf("%d.xml", i), m))
			}
			says, _ := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
			told := verdicts.FindAllSubmatch(says, -1)
			if tc.wrong != "" {
				assert.Empty(t, told, "%s", says)
				return
			}
			require.Len(t, told, len(messages), "%s", says)
			for i, m := range told[1:] {
				assert.Equal(t, i < len(tc.good), string(m[2]) == "validates", "%s: %s", messages[i+1], says)
			}
		})
	}
}

// xmllintTakes are wrong restrictions that xmllint does not look at, beside those of content
// models.
var xmllintTakes = []string{
	"a maximum below the minimum of the base", "more white space", "a fixed attribute with another value",
	"a fixed attribute that is free", "elements, where there is no content",
}

// TestInteropXmllintRestrictions: the verdicts of TestRestrictions are those of xmllint, as far as
// it looks at them.
func TestInteropXmllintRestrictions(t *testing.T) {
	tool := shared.Program(t, "xmllint")
	dir := t.TempDir()
	message := filepath.Join(dir, "e.xml")
	require.NoError(t, os.WriteFile(message, []byte(e("", "")), 0o600))
	for i, tc := range append(simpleRestrictions(), attributeRestrictions()...) {
		file := filepath.Join(dir, fmt.Sprintf("%d.xsd", i))
		require.NoError(t, os.WriteFile(file, []byte(schema(target, tc.text)), 0o600))
		says, _ := exec.CommandContext(t.Context(), tool, "--nonet", "--noout", "--schema",
			file, message).CombinedOutput()
		compiles := verdicts.Match(says)
		assert.Equal(t, tc.wrong == "" || slices.Contains(xmllintTakes, tc.what), compiles, "%s: %s", tc.what, says)
	}
}

// jdkJudge is a program that prints the schemas that the JDK refuses, which are those of Xerces.
const jdkJudge = `import java.io.File; import javax.xml.validation.SchemaFactory;
public class Judge { public static void main(String[] files) {
	for (String f : files) try { SchemaFactory.newInstance("http://www.w3.org/2001/XMLSchema").newSchema(new File(f));
	} catch (org.xml.sax.SAXException e) { System.out.println(f + " refused: " + e.getMessage()); } } }`

// TestInteropJDKRestrictions: the verdicts of TestRestrictions are those of the JDK, which knows
// all rules of XML Schema 1.0.
func TestInteropJDKRestrictions(t *testing.T) {
	tool := shared.Program(t, "java")
	dir := t.TempDir()
	judge := filepath.Join(dir, "Judge.java")
	require.NoError(t, os.WriteFile(judge, []byte(jdkJudge), 0o600))
	args, wrong := []string{judge}, map[string]string{}
	for i, tc := range slices.Concat(simpleRestrictions(), attributeRestrictions(), particleRestrictions()) {
		file := filepath.Join(dir, fmt.Sprintf("%d.xsd", i))
		require.NoError(t, os.WriteFile(file, []byte(schema(target, tc.text)), 0o600))
		args = append(args, file)
		if tc.wrong != "" {
			wrong[file] = tc.what
		}
	}
	says, err := exec.CommandContext(t.Context(), tool, args...).Output()
	require.NoError(t, err)
	refused := regexp.MustCompile(`(?m)^(\S+) refused: (.*)$`).FindAllSubmatch(says, -1)
	require.NotEmpty(t, refused)
	for _, m := range refused {
		assert.NotEmpty(t, wrong[string(m[1])], "%s: %s", m[1], m[2])
		delete(wrong, string(m[1]))
	}
	assert.Empty(t, wrong)
}

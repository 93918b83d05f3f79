package secret_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/secret"
)

// knownSecret is a secret of 32 different bytes, none of them like text.
func knownSecret(t *testing.T) secret.Secret {
	t.Helper()
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(0xa1 + 3*i)
	}
	s, err := secret.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leaks returns the form in which out reveals four neighbouring bytes of the secret, or "".
func leaks(out string, secret []byte) string {
	for i := range len(secret) - 3 {
		four := secret[i : i+4]
		for how, form := range map[string]string{
			"bytes":     string(four),
			"hex":       hex.EncodeToString(four),
			"HEX":       strings.ToUpper(hex.EncodeToString(four)),
			"hex list":  fmt.Sprintf("% x", four),
			"Go syntax": strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", four), "[]byte{"), "}"),
			"decimal":   strings.Trim(fmt.Sprint(four), "[]"),
			"JSON list": strings.ReplaceAll(strings.Trim(fmt.Sprint(four), "[]"), " ", ","),
			"octal":     strings.Trim(fmt.Sprintf("%o", four), "[]"),
			"binary":    strings.Trim(fmt.Sprintf("%b", four), "[]"),
			"quoted":    strings.Trim(fmt.Sprintf("%q", four), `"`),
		} {
			if strings.Contains(out, form) {
				return how
			}
		}
	}
	for how, base := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
		if strings.Contains(out, base.EncodeToString(secret[:30])) {
			return how
		}
	}
	return ""
}

func TestAnIDIsHalfOfTheSHA256OfTheSecret(t *testing.T) {
	t.Parallel()
	s := secret.New()
	sum := sha256.Sum256(s.Bytes())
	if want := base64.RawURLEncoding.EncodeToString(sum[:16]); s.ID() != want || len(want) != 22 {
		t.Errorf("ID = %s, want %s", s.ID(), want)
	}
}

func TestEverySecretIsAnother(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		s := secret.New()
		if len(s.Bytes()) != 32 || bytes.Count(s.Bytes(), []byte{0}) > 16 || seen[s.ID()] {
			t.Fatalf("not random: %x", s.Bytes())
		}
		seen[s.ID()] = true
	}
}

func TestParseIsTheInverseOfBytes(t *testing.T) {
	t.Parallel()
	s := secret.New()
	b := s.Bytes()
	parsed, err := secret.Parse(b)
	if err != nil || parsed.ID() != s.ID() || !bytes.Equal(parsed.Bytes(), b) {
		t.Errorf("Parse = %v, %v, want %v", parsed, err, s)
	}
	clear(b) // neither secret may share the caller's slice
	if parsed.ID() != s.ID() || bytes.Equal(s.Bytes(), b) || bytes.Equal(parsed.Bytes(), b) {
		t.Error("the caller's slice is part of a secret")
	}
}

func TestParseNeverRepeatsWhatItRefused(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 16, 31, 33, 64, 1000} {
		b := bytes.Repeat([]byte("sEcReT"), size)[:size]
		s, err := secret.Parse(b)
		if err == nil {
			t.Errorf("%d bytes are accepted as a secret", size)
			continue
		}
		if s.ID() != (secret.Secret{}).ID() {
			t.Errorf("%d bytes: a secret together with the error", size)
		}
		for _, part := range []string{"sEcR", hex.EncodeToString([]byte("sEcR")), base64.StdEncoding.EncodeToString([]byte("sEc"))} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%d bytes: the error repeats them: %v", size, err)
			}
		}
	}
}

func TestPrintingASecretPrintsItsID(t *testing.T) {
	t.Parallel()
	s := knownSecret(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%100v", "%.3s", "%z", "%!"} {
		for holder, v := range map[string]any{
			"secret":  s,
			"pointer": &s,
			"slice":   []secret.Secret{s},
			"map":     map[string]secret.Secret{"a": s},
			"field":   struct{ Secret secret.Secret }{s},
			"pair":    struct{ Any any }{&s},
		} {
			out := fmt.Sprintf(verb, v)
			if how := leaks(out, s.Bytes()); how != "" {
				t.Errorf("%s of a %s leaks the secret as %s: %s", verb, holder, how, out)
			}
			if holder == "secret" && !strings.HasPrefix(out, s.ID()) {
				t.Errorf("%s prints %s, want the id", verb, out)
			}
		}
	}
	// With some of these verbs, and in some of these values, fmt does not call the secret's Format.
	for _, verb := range []string{"%w", "%p", "%v", "%+v", "%#v", "%x", "%d"} {
		for _, v := range []any{s, &s, struct{ secret secret.Secret }{s}, &struct{ secret []secret.Secret }{[]secret.Secret{s}}} {
			if out := fmt.Sprintf(verb, v); leaks(out, s.Bytes()) != "" {
				t.Errorf("%s of a %T leaks: %s", verb, v, out)
			}
		}
	}
	if out := fmt.Sprint("a", s) + fmt.Sprintln(s) + fmt.Errorf("no session %v", s).Error(); leaks(out, s.Bytes()) != "" {
		t.Errorf("leaks: %s", out)
	}
}

func TestNeitherJSONNorLogsHoldASecret(t *testing.T) {
	t.Parallel()
	s := knownSecret(t)
	holder := struct {
		Secret  secret.Secret
		Pointer *secret.Secret
	}{s, &s}
	for _, v := range []any{s, &s, holder, []secret.Secret{s}, map[string]any{"a": s}} {
		out, err := json.Marshal(v)
		if err != nil || leaks(string(out), s.Bytes()) != "" {
			t.Errorf("json.Marshal leaks: %s, %v", out, err)
		}
		var buf bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&buf, nil), slog.NewJSONHandler(&buf, nil)} {
			slog.New(h).With("with", v).WithGroup("group").Info("message", "secret", v, slog.Any("any", v))
		}
		if how := leaks(buf.String(), s.Bytes()); how != "" {
			t.Errorf("slog leaks as %s: %s", how, &buf)
		}
	}
}

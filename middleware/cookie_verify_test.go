package middleware

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/gorilla/securecookie"
)

// FuzzReadCookie reads any header, with a cookie that the right key has signed, twice: with readIDs, and with
// net/http and securecookie. Both must find the same IDs. An attacker without the key cannot sign anything, but even
// with the key the two must not differ.
func FuzzReadCookie(f *testing.F) {
	keys := [][]byte{bytes.Repeat([]byte("new "), 8), bytes.Repeat([]byte("old "), 16)}
	const lifetime = 400 * 24 * time.Hour // the longest that a browser keeps a cookie
	c, err := newCookies(Options{Keys: keys, Cookie: http.Cookie{Name: "sid"}})
	if err != nil {
		f.Fatal(err)
	}
	now, text := time.Now().Unix(), base64.URLEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32))
	issued, err := c.issue(guest, cookieKey{secret: secret.New()}.raw(), nil)
	if err != nil || len(readBySecurecookie(&http.Request{Header: http.Header{"Cookie": {issued.String()}}}, keys, lifetime)) != 1 {
		f.Fatalf("%v: %v is not genuine to securecookie", err, issued)
	}
	// No age is within 100 s of the limit. The two readers run one after the other, and a cookie must not expire in
	// between.
	for _, age := range []int64{0, -1e6, 1e6, 34_559_900, 34_560_100, 1e8, now, 2 * now} {
		f.Add("", strconv.FormatInt(now-age, 10), text, "", "", "")
	}
	for _, date := range []string{"", "+", "-", "0", "x", " 1", "1e9", "9223372036854775807", "9223372036854775808"} {
		f.Add("", date, text, "", "", "")
		f.Add("", date+strconv.FormatInt(now, 10), text, "", "", "")
	}
	for _, other := range []string{"", text + "|", "|" + text, text[:43], text[:42] + "t=", text[:20] + "\n" + text[20:], text[4:], text + text} {
		f.Add("", strconv.FormatInt(now, 10), other, "", "", "")
	}
	for _, around := range [][3]string{{`"`, "", `"`}, {`"`, "", ""}, {" ", "", " \t"}, {"", "", "\u2000"}, {"", "\n", ""}, {"", ";sid", ""}, {"", "", `\`}} {
		f.Add("theme=dark; sid = ;;=; sid=\"; ", strconv.FormatInt(now, 10), text, around[0], around[1], around[2])
	}
	for _, value := range []string{"", "%%%%", "====", "fHx8fA==", `"abc"`, "a;sid=b", strings.Repeat("A", 700)} {
		f.Add("sid="+value+"; ", strconv.FormatInt(now, 10), text, "", "", "")
	}
	f.Add("\u2000", strconv.FormatInt(now, 10), text, "", "", "")
	f.Fuzz(func(t *testing.T, before, date, text, left, middle, right string) {
		plain := date + "|" + text + "|"
		lines := []string{before + plain + left + middle + right}
		for _, key := range append(keys, make([]byte, 32)) {
			mac := hmac.New(sha256.New, key)
			_, _ = io.WriteString(mac, "sid|"+strings.TrimSuffix(plain, "|"))
			signed := base64.URLEncoding.EncodeToString(mac.Sum([]byte(plain)))
			value := left + signed[:40] + middle + signed[40:] + right + ";" + before
			lines = append(lines, before+"sid="+value, before+"sid-login="+value)
			mac.Reset()
			_, _ = io.WriteString(mac, "sid-login|"+strings.TrimSuffix(plain, "|"))
			signed = base64.URLEncoding.EncodeToString(mac.Sum([]byte(plain)))
			lines = append(lines, before+"sid-login="+left+signed[:40]+middle+signed[40:]+right+";"+before)
		}
		if strings.Count(strings.Join(lines, ";"), ";") > 1000 {
			t.Skip("net/http reads none of so many")
		}
		for i := range lines {
			for _, header := range [][]string{lines[i:], lines[i : i+1]} {
				r := &http.Request{Header: http.Header{"Cookie": header}}
				got, _, _ := c.readIDs(r, nil)
				if want := readBySecurecookie(r, keys, lifetime); !slices.Equal(got, want) {
					t.Errorf("%q: read %q, by securecookie %q", header, got, want)
				}
			}
		}
	})
}

// readBySecurecookie does what cookies.readIDs should do, with net/http and securecookie.
func readBySecurecookie(r *http.Request, keys [][]byte, lifetime time.Duration) (ids []cameID) {
	for k, name := range []string{member: "sid-login", guest: "sid"} {
		verified := 0
		for _, cookie := range r.CookiesNamed(name) {
			if _, err := strictBase64.DecodeString(cookie.Value); err != nil || len(cookie.Value) > maxValue || verified == maxTried {
				continue
			}
			verified++
			for _, key := range keys {
				codec := securecookie.New(key, nil).SetSerializer(securecookie.NopEncoder{}).MaxAge(int(lifetime.Seconds()))
				var b []byte
				if codec.Decode(name, cookie.Value, &b) != nil || len(b) != 32 {
					continue
				}
				if came := (cameID{idOf(b), role(k)}); !slices.Contains(ids, came) {
					ids = append(ids, came)
				}
			}
		}
	}
	return ids
}

func idOf(secret []byte) string {
	sum := sha256.Sum256(secret)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// wide is the size of the signatures in this test, in bytes. With 32 bytes the difference would be a few nanoseconds,
// too few to measure.
const wide = 1 << 16

// A wideHash is a hash with wide sums, all of them zero.
type wideHash struct {
	summed *time.Time // when the last sum was made
}

func (*wideHash) Write(p []byte) (int, error) { return len(p), nil }
func (*wideHash) Reset()                      {}
func (*wideHash) Size() int                   { return wide }
func (*wideHash) BlockSize() int              { return 64 }

func (h *wideHash) Sum(b []byte) []byte {
	b = append(b, make([]byte, wide)...)
	*h.summed = time.Now()
	return b
}

// The time to check a forged signature does not reveal which byte is wrong. Otherwise an attacker could guess a
// signature byte by byte. A comparison that stops at the first difference takes more than a hundred times as long for
// the last byte as for the first. The two forgeries take turns, and the shortest of many tries counts: a busy machine
// can make a try longer but not shorter.
func TestTheComparisonOfSignaturesLeaksNothing(t *testing.T) {
	t.Parallel()
	var summed time.Time
	k := newChecker([roles]string{"sid-login", "sid"}, nil, math.MaxInt64)
	verify := func(signature []byte) (genuine bool, took time.Duration) {
		_, _, genuine = k.signed(guest, &wideHash{&summed}, append([]byte("1|c2VjcmV0|"), signature...))
		return genuine, time.Since(summed)
	}
	genuine := make([]byte, wide)
	if ok, _ := verify(genuine); !ok {
		t.Fatal("the genuine signature is refused")
	}
	took := map[int]time.Duration{0: math.MaxInt64, wide - 1: math.MaxInt64}
	for range 25 {
		for at, shortest := range took {
			forged := bytes.Clone(genuine)
			forged[at] = 1
			ok, d := verify(forged)
			if ok {
				t.Fatal("a forged signature is taken")
			}
			took[at] = min(shortest, d)
		}
	}
	if last, first := took[wide-1], took[0]; last > 10*first {
		t.Errorf("a forgery takes %v if its last byte is wrong, and %v if its first is", last, first)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browse starts a browser of its own and returns the context of its first tab.
func browse(t testing.TB) context.Context {
	t.Helper()
	need(t, "chromium")
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(time.Minute), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	return openTab(t, ctx)
}

// openTab opens one more tab. A tab lives as long as the context it is first used
// with, so that must be one without a bound.
func openTab(t testing.TB, browser context.Context) context.Context {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab); err != nil {
		t.Fatalf("no tab was to be had: %v", err)
	}
	return tab
}

// do performs actions within a bound: fifty tabs that start at once take minutes of two cores.
func do(t testing.TB, tab context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, 3*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](t testing.TB, tab context.Context, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// eventually waits until the page says yes.
func eventually(t testing.TB, tab context.Context, what, expression string) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !ask[bool](t, tab, "!!("+expression+")"); {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s: %s", what, ask[string](t, tab, "document.body.innerText"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// look sets the size of the window and the colours.
func look(t testing.TB, tab context.Context, width int64, scheme string) {
	t.Helper()
	do(t, tab,
		chromedp.EmulateViewport(width, 900),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
				},
			})
			return err
		}))
}

// shoot keeps a picture of the page and returns its file.
func shoot(t testing.TB, tab context.Context, name string, take chromedp.Action[[]byte]) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(artefacts(t), name+".png")
	if err := os.WriteFile(path, png, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d kB", path, len(png)/1024)
	return path
}

// quote writes a value as JavaScript.
func quote(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

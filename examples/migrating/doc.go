// Package migrating shows the same protection twice: as other packages give it,
// and as a gate does. Its tests send both the same requests, and docs/migrating.md
// shows its marked regions.
package migrating

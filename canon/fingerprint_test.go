package canon_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpx-go/mcpx/canon"
)

func TestFingerprintIsThatOfAgentX(t *testing.T) {
	args := []byte(`{"slot":"14:30","patientId":"patient_4081","date":"2026-09-01","note":"first visit","doctorId":"doc_dr_ayse"}`)
	selected, err := canon.Select(args, []string{"patientId", "doctorId", "date", "slot"})
	require.NoError(t, err)
	assert.Equal(t, `{"date":"2026-09-01","doctorId":"doc_dr_ayse","patientId":"patient_4081","slot":"14:30"}`, string(selected))
	got, err := canon.Fingerprint(canon.Tool, "book_appointment", selected)
	require.NoError(t, err)
	assert.Equal(t, "01c86a62c01771c87e4a21eb181a1f759b071abbdcfecd09d960c005a2b7e8f7", got)
}

func TestFingerprintHashesKindNameAndSelection(t *testing.T) {
	for _, tt := range []struct {
		kind           canon.Kind
		selected, text string
	}{
		{canon.Tool, `{"b":1.0, "a":"x"}`, `tx:create_route:auto:{"a":"x","b":1}`},
		{canon.Plan, `{"b":1.0, "a":"x"}`, `tx:create_route:plan:{"a":"x","b":1}`},
		{canon.Custom, `my key: 1.0`, `tx:create_route:custom:my key: 1.0`},
		{canon.Custom, `{"b":1.0, "a":"x"}`, `tx:create_route:custom:{"b":1.0, "a":"x"}`},
	} {
		sum := sha256.Sum256([]byte(tt.text))
		got, err := canon.Fingerprint(tt.kind, "create_route", []byte(tt.selected))
		require.NoError(t, err)
		assert.Equal(t, hex.EncodeToString(sum[:]), got)

		key := []byte("a key that stays secret")
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(tt.text))
		keyed, err := canon.FingerprintKeyed(tt.kind, "create_route", []byte(tt.selected), key)
		require.NoError(t, err)
		assert.Equal(t, hex.EncodeToString(mac.Sum(nil)), keyed)
	}
}

func TestFingerprintsThatIdentifyNothingAreRefused(t *testing.T) {
	key := []byte("key")
	for _, tt := range []struct {
		name     string
		kind     canon.Kind
		tool     string
		selected string
		want     string
	}{
		{"no name", canon.Tool, "", `{}`, "without a name"},
		{"name not UTF-8", canon.Tool, "\xff", `{}`, "not UTF-8"},
		{"no kind", "", "t", `{}`, "no such kind"},
		{"unknown kind", "other", "t", `{}`, `no such kind "other"`},
		{"empty own key", canon.Custom, "t", ``, "empty"},
		{"own key not UTF-8", canon.Custom, "t", "\xff", "not UTF-8"},
		{"no selection", canon.Tool, "t", ``, "not one JSON value"},
		{"malformed selection", canon.Plan, "t", `{"a":1,"a":1}`, "duplicate key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canon.Fingerprint(tt.kind, tt.tool, []byte(tt.selected))
			assert.Empty(t, got)
			require.ErrorContains(t, err, tt.want)
			got, err = canon.FingerprintKeyed(tt.kind, tt.tool, []byte(tt.selected), key)
			assert.Empty(t, got)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for _, none := range [][]byte{nil, {}} {
		got, err := canon.FingerprintKeyed(canon.Tool, "t", []byte(`{}`), none)
		assert.Empty(t, got)
		require.ErrorContains(t, err, "key is empty")
	}
}

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The models below are cut down to what counts; the codes are those of real services.
var models = fstest.MapFS{
	"models/apis/sns/2010-03-31/api-2.json": {Data: []byte(`{"metadata":{"serviceId":"SNS"},"shapes":{
		"KMSThrottlingException":{"type":"structure","error":{"code":"KMSThrottling","httpStatusCode":400},"exception":true},
		"ThrottledException":{"error":{"code":"Throttled","httpStatusCode":429},"exception":true},
		"EndpointDisabledException":{"error":{"code":"EndpointDisabled","httpStatusCode":400},"exception":true},
		"KMSDisabledException":{"error":{"code":"KMSDisabled"},"exception":true},
		"ThrottlePolicy":{"type":"string"},
		"TopicLimitExceededException":{"error":{"code":"TopicLimitExceeded","httpStatusCode":403},"exception":true}}}`)},
	"models/apis/kinesisvideo/2017-09-30/api-2.json": {Data: []byte(`{"metadata":{"serviceId":"Kinesis Video"},"shapes":{
		"ClientLimitExceededException":{"error":{"httpStatusCode":400},"exception":true},
		"AccountStreamLimitExceededException":{"exception":true}}}`)},
	"models/apis/kinesisvideo/2017-09-30/docs-2.json": {Data: []byte(`{"shapes":{
		"ClientLimitExceededException":{"base":"<p>Kinesis Video Streams has throttled the request because …</p>"}}}`)},
	"models/apis/x/1/api-2.json": {Data: []byte(`{"metadata":{"serviceId":"X"},"shapes":{
		"Odd":{"exception":true,"retryable":{"throttling":true}},
		"Throttled":{"exception":true},
		"TooManyTagsException":{"exception":true},"BatchDeleteRequestSizeExceeded":{"exception":true}}}`)},
}

func TestOnlyThrottlesAreFound(t *testing.T) {
	got, err := throttles(models)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ClientLimitExceededException", "KMSThrottling", "KMSThrottlingException", "Odd", "Throttled", "ThrottledException"}
	if codes := slices.Sorted(maps.Keys(got)); !slices.Equal(codes, want) {
		t.Errorf("found %v, want %v", codes, want)
	}
	text, err := file("example.test/sdk@v1", got)
	if err != nil || !strings.Contains(string(text), "// SNS, X\n\t\t\"Throttled\",\n") || !strings.Contains(string(text), "sdk@v1. DO NOT EDIT.") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestModelsThatAreMissingOrBrokenAreErrors(t *testing.T) {
	broken := fstest.MapFS{"models/apis/x/1/api-2.json": {Data: []byte(`{`)}}
	for _, files := range []fstest.MapFS{{}, broken} {
		if codes, err := throttles(files); err == nil {
			t.Errorf("%v, without an error", codes)
		}
	}
}

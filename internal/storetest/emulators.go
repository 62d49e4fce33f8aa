package storetest

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Google starts an emulator of Google Cloud Storage with one empty bucket, sets the
// environment in which programs find it, and returns the bucket's URL.
func Google(t *testing.T) string {
	t.Helper()
	program := os.Getenv("BLOOMJOIN_FAKEGCS")
	if program == "" {
		t.Skip("BLOOMJOIN_FAKEGCS names no fake-gcs-server (go install github.com/fsouza/fake-gcs-server@v1.56.1)")
	}
	p := port(t)
	address := "127.0.0.1:" + p
	serve(t, "tcp", address, nil, program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", p,
		"-public-host", address, "-external-url", "http://"+address, "-log-level", "error")
	resp, err := http.Post("http://"+address+"/storage/v1/b", "application/json", bytes.NewReader([]byte(`{"name": "bucket"}`)))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	return "gs://bucket/"
}

// Azure starts an emulator of Azure Blob Storage with one empty container, sets the
// environment in which programs find it, and returns the container's URL.
func Azure(t *testing.T) string {
	t.Helper()
	program := os.Getenv("BLOOMJOIN_AZURITE")
	if program == "" {
		t.Skip("BLOOMJOIN_AZURITE names no azurite-blob (npm install azurite@3.37.0)")
	}
	p := port(t)
	address := "127.0.0.1:" + p
	serve(t, "tcp", address, nil, program, "--blobHost", "127.0.0.1", "--blobPort", p, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	// The account and key that all emulators have, from their documentation.
	const account, key = "devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	connection := "DefaultEndpointsProtocol=http;AccountName=" + account + ";AccountKey=" + key + ";BlobEndpoint=http://" + address + "/" + account + ";"
	for name, value := range map[string]string{
		"AZURE_STORAGE_ACCOUNT": account, "AZURE_STORAGE_KEY": key, "AZURE_STORAGE_DOMAIN": address, "AZURE_STORAGE_PROTOCOL": "http",
		"AZURE_STORAGE_IS_LOCAL_EMULATOR": "true", "AZURE_STORAGE_CONNECTION_STRING": connection,
	} {
		t.Setenv(name, value)
	}
	c, err := container.NewClientFromConnectionString(connection, "bucket", nil)
	if err == nil {
		_, err = c.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "azblob://bucket/"
}

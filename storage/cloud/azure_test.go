package cloud

import "testing"

// The address of a container comes from the environment, and what is missing there from a
// connection string.
func TestAzureAddress(t *testing.T) {
	const connection = "DefaultEndpointsProtocol=http;AccountName=theirs;AccountKey=a==;EndpointSuffix=x"
	for want, env := range map[string]map[string]string{
		"https://mine.blob.core.windows.net/c":      {"ACCOUNT": "mine"},
		"http://theirs.blob.core.windows.net/c":     {"CONNECTION_STRING": connection},
		"https://mine.d/c?sig=a%2B&se=1":            {"ACCOUNT": "mine", "DOMAIN": "d", "PROTOCOL": "https", "CONNECTION_STRING": connection, "SAS_TOKEN": "sig=a%2B&se=1"},
		"http://127.0.0.1:1/mine/c":                 {"ACCOUNT": "mine", "DOMAIN": "127.0.0.1:1", "PROTOCOL": "http"},
		"https://host/mine/c":                       {"ACCOUNT": "mine", "DOMAIN": "host", "IS_LOCAL_EMULATOR": "true"},
		"https://cdn.example/c":                     {"ACCOUNT": "mine", "DOMAIN": "cdn.example", "IS_CDN": "1"},
		"https://mine.blob.core.chinacloudapi.cn/c": {"ACCOUNT": "mine", "DOMAIN": "blob.core.chinacloudapi.cn", "IS_CDN": "no"},
	} {
		for _, name := range []string{"ACCOUNT", "DOMAIN", "PROTOCOL", "SAS_TOKEN", "IS_LOCAL_EMULATOR", "IS_CDN"} {
			t.Setenv("AZURE_STORAGE_"+name, env[name])
		}
		if got := azureAccount(env["CONNECTION_STRING"]).container("c"); got != want {
			t.Errorf("%v: %s, want %s", env, got, want)
		}
	}
}

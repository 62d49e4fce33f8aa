// Package cloud reads and writes objects in object stores: Amazon S3 and compatible
// services, Google Cloud Storage, Azure Blob Storage. It also reads over HTTP. A [Store]
// is a [storage.Storage]: functions that take one then accept URLs as names. The example
// named Open opens a log in a store.
//
// No other package of this module imports this one, so a program that works on
// local files alone contains no cloud SDK.
//
// # Names
//
//	s3://bucket/key                                      also s3a://, s3n://
//	gs://bucket/key
//	azblob://container/key                               also az://; the account is AZURE_STORAGE_ACCOUNT
//	abfss://container@account.dfs.core.windows.net/key   also abfs://
//	wasbs://container@account.blob.core.windows.net/key  also wasb://
//	https://host/path?query                              also http://; read only
//	file:///path                                         a local file
//	mem://bucket/key                                     memory of this Store, for tests
//
// A name without "://" goes to [Options].Local. Keys are taken as they stand: a '%'
// begins no escape. In names of object stores '*', '?' and '[' form patterns as in
// local names. A name is a directory if it has keys below it.
//
// # Credentials
//
// Each cloud's credentials are found as its own tools do: environment variables,
// profiles and shared files, web identity, roles of machines and containers.
//
//	           variables                                            other settings
//	S3         AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ROLE_ARN, …      AWS_REGION, AWS_ENDPOINT_URL
//	Google     GOOGLE_APPLICATION_CREDENTIALS                       STORAGE_EMULATOR_HOST
//	Azure      AZURE_STORAGE_KEY, AZURE_STORAGE_CONNECTION_STRING,  AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_DOMAIN
//	           AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID, …
//
// [Options] come first. Errors contain no
// credentials.
//
// # Catalogs
//
// A [Store] also loads tables from Iceberg REST catalogs, and reads their files in S3 with the
// credentials that the catalog grants (vends) for them, which it renews. One of the first three
// variables says how requests to catalogs are authorized:
//
//	BLOOMJOIN_REST_TOKEN       a bearer token
//	BLOOMJOIN_REST_CREDENTIAL  ID:SECRET of an OAuth 2.0 client; BLOOMJOIN_REST_OAUTH2_URI and
//	                           BLOOMJOIN_REST_SCOPE say where and for what it gets tokens
//	BLOOMJOIN_REST_SIGV4       glue, s3tables or execute-api: signatures with the credentials of S3,
//	                           for the region BLOOMJOIN_REST_REGION
//	BLOOMJOIN_REST_WAREHOUSE   which of the catalog's warehouses
//
// # Identity
//
// Every read is pinned to the version that was listed or opened, by the ETag (S3,
// Azure, HTTP) or the generation (Google) that the request carries. If the object
// has changed, the read fails with [storage.ErrChanged].
//
// # Requests
//
// Ranges that a reader announces ([storage.Prefetcher]) are fetched ahead of the
// reads, in few requests: ranges whose distance costs less than another request
// would are fetched together. Failed requests are sent again, and an answer that is
// cut off is resumed where it ended. A request that
// still fails, and may succeed later, returns [storage.ErrAgain].
//
// # Writing
//
// An object is uploaded under its final name, and is invisible before
// [storage.Writer.Commit]. Objects of more than 8 MiB are uploaded in parts while
// they are written. Commit without replacing is exclusive, by a condition of the
// request; where a service answers that it knows none, the object is looked up
// first, and one that appears at the same moment is replaced.
//
// A process that is killed leaves unfinished uploads, which take space but are no
// objects. Google and Azure drop them after a week, S3 never. So uploads to S3 are
// recorded in the user's cache directory, under bloomjoin/uploads, and
// Sweep (see [storage.Sweeper]) drops those of processes that have ended on this machine, and any
// that are older than a week. Records need Linux.
package cloud

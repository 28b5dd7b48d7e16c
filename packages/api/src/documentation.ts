import { requestVocabulary } from "@seatrial/domain"
import { exampleIds } from "./examples.ts"

interface Words {
  readonly summary: string
  readonly description: string
}

const listed = "Newest first. The next page is fetched with `next_cursor` as `cursor` and all other filters unchanged; null marks the end."
const requestsListed = `Completed and refused requests; one that is running is in no list. ${listed}`
const requestRead = "One inference request, also while it is running. Prompts and completions are never returned."
const receiptRead =
  "What served the request: the weights' commit, the engine's version, the verification of the revision, the usage, the prices and the cost. Its signature is in the header `seatrial-signature`; with `Accept: application/jose+json` receipt and signature come as one JWS. `/.well-known/jwks.json` has the keys."
const deploymentRead = "One deployment with its phases so far, oldest first, its checks and its revision. Poll this to follow a deployment."

/** What each operation is, by its `operationId`. */
export const operationWords: Readonly<Record<string, Words>> = {
  listRequests: { summary: "List requests", description: requestsListed },
  getRequest: { summary: "Get a request", description: requestRead },
  getReceipt: { summary: "Get a receipt", description: receiptRead },
  listOrgModels: { summary: "List models", description: `The organization's models, in every status. ${listed}` },
  getOrgModel: { summary: "Get a model", description: "One model of the organization, with the revision that serves or served last." },
  listDeployments: { summary: "List deployments", description: `Phases have their full names here. ${listed}` },
  getDeployment: { summary: "Get a deployment", description: `${deploymentRead} Phases have their full names here.` },
  listAuditEvents: { summary: "List audit events", description: `Changes of the organization's data and who made them. ${listed}` },
  getAuditEvent: { summary: "Get an audit event", description: "One change, with what was before and what is after. No event holds a secret." },
  "requests.list": { summary: "List requests", description: requestsListed },
  "requests.get": { summary: "Get a request", description: requestRead },
  "requests.receipt": { summary: "Get a receipt", description: receiptRead },
  "deployments.preview": {
    summary: "Preview a deployment",
    description:
      "Reads the repository through the key's creator's connection to the model hub and tells whether and how it can be served. Creates nothing, downloads no weights and touches no GPU. 200 both ways: `kind` is `derived` or `refused`. `serving` of the answer can be pasted into a create."
  },
  "deployments.create": {
    summary: "Create a deployment",
    description:
      "Makes a new model from a `source`, or runs an existing one again by its `model_id`. Also needs `models:write` unless `serve` is false. A repeated create with the same `Idempotency-Key` and input answers 200 with `Idempotent-Replayed: true` and the operation as it is now. A host class that the installation does not have is 422, as what a preview would refuse and is known at once; a runtime, cache type or engine flag that it does not have is 400."
  },
  "deployments.list": { summary: "List deployments", description: `Phases as the \`/v1\` family names them. ${listed}` },
  "deployments.get": { summary: "Get a deployment", description: `${deploymentRead} Phases as the \`/v1\` family names them.` },
  "deployments.events": { summary: "Get a deployment's phases", description: "The phases so far, oldest first: a finite snapshot, not a stream." },
  "deployments.progress": {
    summary: "Get a deployment's progress",
    description:
      "What the deployment does or waits for now: a message for people, what it waits for with its place in the queue, and how far the download is. Updated every few seconds at most. An addition to the contract's records, which have no such fields."
  },
  "deployments.cancel": {
    summary: "Cancel a deployment",
    description:
      "Ends this run before anything else does, or answers 409. Takes no body, or `{}`. What serves goes on, the model stays stored and reserved capacity is not released."
  },
  "models.list": {
    summary: "List own served models",
    description: "The organization's own served models as catalog records with rates of zero: what the ordinary OpenAI clients ask for."
  },
  "models.disable": {
    summary: "Disable a model",
    description:
      "The model takes no requests from now on, and its GPUs are given back once those under way have ended. Its weights and settings stay. 204 also if it is disabled already. Takes no body, or `{}`."
  },
  "models.enable": {
    summary: "Enable a model",
    description: "The revision that served before serves again, once its engine is ready. 204 also if the model is enabled already. Takes no body, or `{}`."
  },
  "models.delete": {
    summary: "Delete a model",
    description:
      "Deletes the model for good: its unfinished deployment is canceled, what serves ends with its last request, and its name is free. Requests, receipts and audit events stay. A second call is 404. A model that a ModelDeployment in the cluster manages is 409: delete that object."
  },
  "catalog.list": {
    summary: "List published models",
    description:
      "The public catalog with rates per token. Needs no key; one that is sent is not looked at. Send `If-None-Match` to get 304 where nothing has changed."
  },
  "system.health": { summary: "Is the process alive", description: "For liveness probes; asks nothing of the database." },
  "system.readiness": {
    summary: "Is the server ready",
    description: "For readiness probes: 503 while the database does not answer, or if its schema needs a later version of the server."
  },
  "system.signingKeys": {
    summary: "Keys of receipts' signatures",
    description:
      "The public keys (a JWK Set) that receipts are and were signed with, the current one first; none where the installation does not sign. A signature by a key that is not here counts for nothing."
  },
  "system.index": {
    summary: "What is here",
    description: "A short index of the service: the paths of the documents, of models and of inference. JSON, or a page with `Accept: text/html`."
  },
  "system.document": {
    summary: "This document",
    description: "The interface as OpenAPI 3.1, generated from the schemas that the server decodes and encodes with."
  },
  "system.docs": { summary: "This document to browse", description: "A page that shows this document; it loads nothing from elsewhere." }
}

interface ParameterWords {
  readonly description: string
  readonly example?: string | number
}

/** What each parameter is, by its name. */
export const parameterWords: Readonly<Record<string, ParameterWords>> = {
  cursor: { description: "`next_cursor` of the page before. It belongs to this list, organization and filters; `limit` may change." },
  limit: { description: "Records in a page." },
  model_id: { description: "Only records of this model." },
  api_key_id: { description: "Only requests made with this key." },
  actor_user_id: { description: "Only changes made by this user." },
  resource_type: { description: "Only changes of this kind of resource." },
  status: { description: "Only records in this state." },
  visibility: { description: "Only models of this visibility." },
  q: { description: "Part of slug, display name or repository, in any case; `%`, `_` and `\\` stand for themselves." },
  from: { description: "Not before this time: Unix milliseconds, inclusive, for example 1700000000000." },
  to: { description: "Before this time: Unix milliseconds, exclusive; has to be later than `from`." },
  "idempotency-key": {
    description: "Names this create in the organization, so that it can be repeated: 1 to 128 letters, digits, `.`, `_`, `:` and `-`.",
    example: "deploy-2026-03-02"
  },
  "if-none-match": { description: "The `ETag` of the answer that the caller has." },
  request_id: { description: "Id of the request.", example: exampleIds.request }
}

/** What `id` in a path stands for, by the segment before it. */
export const pathIds: Readonly<Record<string, ParameterWords>> = {
  deployments: { description: "Id of the deployment.", example: exampleIds.deployment },
  models: { description: "Id of the model.", example: exampleIds.model },
  "audit-events": { description: "Id of the audit event.", example: exampleIds.auditEvent }
}

/** What `id` is in the paths of the organization's own models. */
export const modelIdOrName: ParameterWords = {
  description: "Id of the model, or its name: `tiny-chat`, or `acme%2Ftiny-chat` with the organization.",
  example: "tiny-chat"
}

/** Where the records of a list or an operation lead: from operation to operation, by its path parameter. */
export const links: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  listRequests: { getRequest: { request_id: "/data/0/id" }, getReceipt: { request_id: "/data/0/id" } },
  listOrgModels: { getOrgModel: { id: "/data/0/id" } },
  listDeployments: { getDeployment: { id: "/data/0/id" } },
  listAuditEvents: { getAuditEvent: { id: "/data/0/id" } },
  "requests.list": { "requests.get": { request_id: "/data/0/id" }, "requests.receipt": { request_id: "/data/0/id" } },
  "deployments.list": { "deployments.get": { id: "/data/0/id" }, "deployments.events": { id: "/data/0/id" }, "deployments.progress": { id: "/data/0/id" } },
  "deployments.create": {
    "deployments.get": { id: "/id" },
    "deployments.events": { id: "/id" },
    "deployments.progress": { id: "/id" },
    "deployments.cancel": { id: "/id" },
    getDeployment: { id: "/id" },
    getOrgModel: { id: "/model_id" }
  },
  "deployments.cancel": { "deployments.get": { id: "/id" } }
}

/** The document's groups of operations. */
export const tagWords: Readonly<Record<string, string>> = {
  deployments: "Preview, create, follow and cancel deployments; phases as the `/v1` family names them.",
  requests: "Inference requests and their receipts.",
  org: "The organization's data for reading; deployments with every phase under its full name.",
  models: "The organization's own served models, as the OpenAI clients list them, and what is done to them.",
  catalog: "The published models, for everybody.",
  system: "Probes, the keys of receipts' signatures and this document; no key is needed."
}

const inferencePaths = Object.keys(requestVocabulary)
  .map((path) => `\`POST ${path}\``)
  .join(", ")

/** What holds for every operation. */
export const introduction = `Model serving: the organization's requests, receipts, models, deployments and audit events, and the public catalog.

**Keys.** Every operation under \`/v1\` but the catalog takes \`Authorization: Bearer <API_KEY>\`. The organization is always the key's; a record of another organization and one that never was give the same 404. The scopes that an operation needs stand in its \`security\`; of several requirements one is enough.

**Answers.** Every answer has \`x-request-id\`; every error is an Error object that repeats it as \`request_id\`. A path that there is not is 404 \`not_found\`. Every path that takes GET answers HEAD with the same headers and no body, and every path OPTIONS with 204 and \`Allow\`. Another method is 405 with \`Allow\`. What is no well-formed HTTP request is 400, and the connection is closed; so it is after 408 and 431. Pages of other origins are let in (CORS) only where the installation names them.

**Input.** Query parameters and members that an operation does not know, and repeated or empty parameters, are 400 and named in \`param\`. Operations without a key ignore query parameters, the catalog excepted. Bodies are JSON in UTF-8.

**Inference** is served by the gateway, at its own address where it has one, and is not part of this document: ${inferencePaths}. A model's \`supported_endpoints\` and \`supported_parameters_by_endpoint\` name what it takes there.`

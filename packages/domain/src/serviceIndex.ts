import { requestVocabulary } from "./requestVocabulary.ts"

/** A page of the service that a person can open. */
interface IndexLink {
  readonly name: string
  readonly path: string
  readonly description: string
}

/** The document that a program returns at `/`. */
export interface ServiceIndex {
  readonly json: string
  readonly html: string
}

/** The page loads, runs and sends nothing. */
export const indexPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const inferencePaths = Object.keys(requestVocabulary)

const apiLinks: ReadonlyArray<IndexLink> = [
  { name: "documentation", path: "/docs", description: "Interactive documentation of the API" },
  { name: "openapi", path: "/openapi.json", description: "The API as OpenAPI 3.1" },
  { name: "catalog", path: "/v1/catalog/models", description: "Published models; needs no key" }
]
const modelsLink: IndexLink = { name: "models", path: "/v1/models", description: "Your organization's models; needs an API key" }

const notes = {
  server: "The gateway serves the inference paths; in a cluster it may have an address of its own.",
  gateway: "The API server has /docs, /openapi.json and all other paths; it may have an address of its own."
}

/** A short index of what a program serves. Both programs list the inference paths. */
export const serviceIndex = (program: "server" | "gateway"): ServiceIndex => {
  const links = program === "server" ? [...apiLinks, modelsLink] : [modelsLink]
  const note = notes[program]
  const json = {
    name: "Seatrial",
    links: Object.fromEntries(links.map(({ name, path }) => [name, path])),
    inference: inferencePaths,
    note
  }
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Seatrial</title></head>
<body>
<h1>Seatrial</h1>
<ul>
${links.map(({ description, path }) => `<li><a href="${path}">${path}</a>: ${description}</li>`).join("\n")}
</ul>
<h2>Inference</h2>
<p>Send a POST with an API key (<code>Authorization: Bearer &lt;API_KEY&gt;</code>) to:</p>
<ul>
${inferencePaths.map((path) => `<li><code>${path}</code></li>`).join("\n")}
</ul>
<p>${note}</p>
</body>
</html>
`
  return { json: `${JSON.stringify(json, null, 2)}\n`, html }
}

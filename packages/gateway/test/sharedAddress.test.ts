import { assert, it } from "@effect/vitest"
import { isGatewayPath } from "../src/index.ts"

it("on a shared address the gateway serves inference and the record of a model, and the API serves changes of a model", () => {
  const ofGateway = [
    ["POST", "/v1/chat/completions"],
    ["GET", "/v1/models/acme/tiny"],
    ["HEAD", "/v1/models/tiny"],
    ["POST", "/v1/embeddings"]
  ] as const
  const ofApi = [
    ["GET", "/v1/models"],
    ["DELETE", "/v1/models/acme%2Ftiny"],
    ["POST", "/v1/models/tiny/disable"],
    ["POST", "/v1/models/tiny/enable?x=1"],
    ["PUT", "/v1/models/tiny/scaling"],
    ["GET", "/v1/models/acme%2Ftiny/scaling"],
    ["GET", "/v1/org/models/tiny"]
  ] as const
  for (const [method, url] of ofGateway) assert.isTrue(isGatewayPath(url, method), url)
  for (const [method, url] of ofApi) assert.isFalse(isGatewayPath(url, method), url)
})

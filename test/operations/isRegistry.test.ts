import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { isRegistry } from "../../tools/image/isRegistry.ts"

it.each([
  ["is reachable", 200, true],
  ["is reachable, and wants a login", 401, true],
  ["is refused by a proxy", 403, false],
  ["is down behind a proxy", 502, false],
  ["is not there", 404, false]
] as const)("a container registry that %s (%i)", async (_, status, isReachable) => {
  const server = createServer((_request, response) => response.writeHead(status).end())
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  assert.strictEqual(await isRegistry(`http://127.0.0.1:${port}`), isReachable)
  await new Promise((resolve) => server.close(resolve))
  assert.isFalse(await isRegistry(`http://127.0.0.1:${port}`))
})

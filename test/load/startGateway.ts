import { join } from "node:path"
import { Effect } from "effect"
import type { Lab } from "./Lab.ts"
import { profiling, startProgram } from "./Program.ts"

const root = join(import.meta.dirname, "../..")

/** More than any case needs, because limits of callers are not measured. */
const plenty = "4096"

interface GatewayOptions {
  readonly name: string
  /** Its program, from the root of the repository. */
  readonly file: string
  readonly settings?: Readonly<Record<string, string>>
}

/** Starts a gateway on core 0, with the heap of the chart. */
export const startGateway = Effect.fnUntraced(function* (lab: Lab, { file, name, settings = {} }: GatewayOptions) {
  return yield* startProgram({
    name,
    file: join(root, file),
    readyPath: "/readyz",
    environment: (port) => ({
      DATABASE_URL: lab.databaseUrl,
      GATEWAY_HOST: "127.0.0.1",
      GATEWAY_PORT: String(port),
      // As in the chart.
      NODE_OPTIONS: `--max-semi-space-size=16 --max-old-space-size=1024 ${profiling}`,
      GATEWAY_DRAIN_SECONDS: "0",
      GATEWAY_GRACE_SECONDS: "2",
      GATEWAY_KEY_CONCURRENCY: plenty,
      GATEWAY_REQUESTS_PER_KEY: plenty,
      GATEWAY_REQUESTS_PER_KEY_BURST: plenty,
      GATEWAY_REQUESTS_PER_ORG: plenty,
      GATEWAY_REQUESTS_PER_ORG_BURST: plenty,
      GATEWAY_ORG_CONCURRENCY: plenty,
      GATEWAY_ENGINE_CONCURRENCY: plenty,
      ...settings
    }),
    core: 0
  })
})

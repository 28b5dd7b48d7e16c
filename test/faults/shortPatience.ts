import { vi } from "vitest"

// As many schedules as there are would each wait for ten seconds only for an engine to drain: here the gateways hear of a withdrawal within milliseconds, on a busy
// machine too within three seconds.
vi.mock("../../packages/operator/src/limits.ts", async (load) => ({ ...(await load<object>()), drainTime: 3_000, drainInterval: 200 }))

import { vi } from "vitest"

// An engine drains for ten seconds, which is too long for many schedules. Here gateways notice a withdrawal within
// milliseconds, on a busy machine within three seconds.
vi.mock("../../packages/operator/src/limits.ts", async (load) => ({ ...(await load<object>()), drainTime: 3_000, drainInterval: 200, provenTime: 2_000 }))

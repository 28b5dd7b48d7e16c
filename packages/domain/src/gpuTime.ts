import { divideHalfUp } from "./money.ts"

/** GPUs that one pod held. Times are Unix milliseconds. A release before the placement counts as no time. */
export interface GpuHold {
  readonly gpus: number
  /** Micro-dollars per GPU hour at the time of placement. */
  readonly pricePerGpuHour: bigint
  readonly placedAt: number
  readonly releasedAt: number
}

/** GPU time of a deployment on one day. */
export interface GpuDay {
  /** The day in UTC, `YYYY-MM-DD`. */
  readonly day: string
  /** Milliseconds times GPUs. */
  readonly gpuMillis: number
  readonly micros: bigint
}

const dayMillis = 86_400_000
const hourMillis = 3_600_000n

/** Splits a hold at UTC midnights: milliseconds by the first millisecond of each day. */
export const millisByDay = ({ placedAt, releasedAt }: Pick<GpuHold, "placedAt" | "releasedAt">): ReadonlyMap<number, number> => {
  const parts = new Map<number, number>()
  for (let day = placedAt - (placedAt % dayMillis); day < releasedAt && placedAt < releasedAt; day += dayMillis) {
    parts.set(day, Math.min(releasedAt, day + dayMillis) - Math.max(placedAt, day))
  }
  return parts
}

/**
 * Sums up the holds of one deployment, oldest day first. Costs are exact micro-dollars, rounded half up once per day.
 */
export const gpuDays = (holds: ReadonlyArray<GpuHold>): ReadonlyArray<GpuDay> => {
  const days = new Map<number, { gpuMillis: number; scaled: bigint }>()
  for (const hold of holds) {
    for (const [day, millis] of millisByDay(hold)) {
      const sum = days.get(day) ?? { gpuMillis: 0, scaled: 0n }
      const gpuMillis = millis * hold.gpus
      days.set(day, { gpuMillis: sum.gpuMillis + gpuMillis, scaled: sum.scaled + BigInt(gpuMillis) * hold.pricePerGpuHour })
    }
  }
  return [...days]
    .sort(([a], [b]) => a - b)
    .map(([day, { gpuMillis, scaled }]) => ({ day: new Date(day).toISOString().slice(0, 10), gpuMillis, micros: divideHalfUp(scaled, hourMillis) }))
}

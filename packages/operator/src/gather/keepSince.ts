/**
 * Since when something holds, Unix milliseconds, as first observed by this operator; null if it does not hold. Never in
 * the future, even if the clock was set back.
 */
export const keepSince = <Key>(times: Map<Key, number>, key: Key, holds: boolean, now: number): number | null => {
  if (!holds) {
    times.delete(key)
    return null
  }
  const since = Math.min(times.get(key) ?? now, now)
  times.set(key, since)
  return since
}

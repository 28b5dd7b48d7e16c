/** The state of a download in its progress line. */
export interface DownloadState {
  readonly bytes: number
  readonly totalBytes: number
  /** Average over the last 30 seconds; 0 if no data arrives. */
  readonly bytesPerSecond: number
  /** Null if no data arrives. */
  readonly secondsLeft: number | null
  /** Seconds since the last data, if the download is stalled; otherwise null. */
  readonly stalledSeconds: number | null
  /** Whether it waits for another download of the same commit. */
  readonly waiting: boolean
}

const waits = "waits for another download of the commit"

/** The line that a download logs, from which the operator reads the progress. */
export const progressLine = ({ bytes, bytesPerSecond, secondsLeft, stalledSeconds, totalBytes, waiting }: DownloadState): string => {
  if (waiting) return waits
  const rest = stalledSeconds === null ? `${bytesPerSecond} bytes/s${secondsLeft === null ? "" : `, ${secondsLeft} s left`}` : `stalled for ${stalledSeconds} s`
  return `fetched ${bytes} of ${totalBytes} bytes, ${rest}`
}

const pattern = /^fetched (\d{1,15}) of (\d{1,15}) bytes, (?:(\d{1,15}) bytes\/s(?:, (\d{1,15}) s left)?|stalled for (\d{1,15}) s)$/

/** Parses the last progress line of a log; null if there is none. */
export const readProgress = (log: string): DownloadState | null => {
  for (const line of log.split("\n").reverse()) {
    if (line.trim() === waits) return { bytes: 0, totalBytes: 0, bytesPerSecond: 0, secondsLeft: null, stalledSeconds: null, waiting: true }
    const match = pattern.exec(line.trim())
    if (match === null) continue
    const [, bytes, totalBytes, rate, left, stalled] = match
    return {
      bytes: Number(bytes),
      totalBytes: Number(totalBytes),
      bytesPerSecond: Number(rate ?? 0),
      secondsLeft: left === undefined ? null : Number(left),
      stalledSeconds: stalled === undefined ? null : Number(stalled),
      waiting: false
    }
  }
  return null
}

/** `Content-Range: bytes 0-99/1234` as numbers. */
export const contentRange = (header: string | null): { readonly start: number; readonly end: number; readonly total: number } | null => {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? "")
  return match === null ? null : { start: Number(match[1]), end: Number(match[2]), total: Number(match[3]) }
}

/** The path of a request target, including the absolute form that proxies receive. */
export const pathOf = (url: string | undefined): string => {
  const [target = "/"] = (url ?? "/").split("?", 1)
  return target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/]*/i, "")
}

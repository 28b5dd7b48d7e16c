#!/bin/sh
# Usage: root.sh FOLDER
# The Containerfile runs this in its base image. It copies Node, and the Debian packages that Node and a shell need, into FOLDER, which becomes the root of
# the image: without npm, a package manager, and setuid programs. `dpkg` describes the copied packages, so scanners and `npm run sbom` find them.
set -eu
root=$1
packages="base-files coreutils dash gcc-12-base libacl1 libattr1 libc6 libgcc-s1 libgmp10 libpcre2-8-0 libselinux1 libstdc++6"

mkdir -p "$root/usr/local/bin" "$root/var/lib/dpkg" "$root/etc" "$root/tmp"
for folder in bin sbin lib lib32 lib64 libx32; do
  [ -L "/$folder" ] || continue
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
# The base image may lack documentation that dpkg lists.
for package in $packages; do dpkg-query -L "$package"; done | sort -u | while read -r path; do
  case $path in
    /usr/share/doc/*/copyright | /usr/share/common-licenses*) ;;
    /. | /bin | /sbin | /lib | /lib32 | /lib64 | /libx32 | /usr/share/*/*) continue ;;
  esac
  if [ -e "$path" ] || [ -L "$path" ]; then echo ".$path"; fi
done > /tmp/paths
tar -C / -c --no-recursion -T /tmp/paths | tar -C "$root" -x --keep-directory-symlink
for package in $packages; do dpkg-query -s "$package" && echo; done > "$root/var/lib/dpkg/status"
cp /usr/local/bin/node "$root/usr/local/bin/node"

echo "hosts: files dns" > "$root/etc/nsswitch.conf"
printf '%s\n' root:x:0:0:root:/root:/bin/sh nobody:x:65534:65534:nobody:/nonexistent:/bin/false seatrial:x:2000:2000:seatrial:/tmp:/bin/sh > "$root/etc/passwd"
printf '%s\n' root:x:0: nogroup:x:65534: seatrial:x:2000: > "$root/etc/group"
find "$root" ! -type l -exec chmod ug-s {} +
chmod 1777 "$root/tmp"

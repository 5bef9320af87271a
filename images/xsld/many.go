package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// runMany is for load tests: groups of one member, each on an address of its own, all with the same credentials.
func runMany(args []string) error {
	flags := flag.NewFlagSet("many", flag.ContinueOnError)
	count := flags.Int("count", 50, "how many groups")
	addresses := flags.String("addresses", "127.2.0.0/16", "where their addresses are from")
	folder := flags.String("vol", volume(), "folder for their volumes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	network, err := netip.ParsePrefix(*addresses)
	if err != nil {
		return err
	}
	var members []*member
	address := network.Masked().Addr()
	for i := range *count {
		if address = address.Next(); !network.Contains(address) {
			return fmt.Errorf("%s has not %d addresses", *addresses, *count)
		}
		name := fmt.Sprintf("m%d-0", i) // the pod of a cache m0, m1 ...
		own := map[string]string{"MEMBER_NAME": name, "XSLD_ADDRESS": address.String(), "XSLD_HOST": address.String(),
			"XSLD_VOL": filepath.Join(*folder, name)}
		settings, err := settingsFrom(func(key string) string {
			if value, ok := own[key]; ok {
				return value
			}
			return os.Getenv(key)
		})
		if err != nil {
			return err
		}
		settings.lightweight = true
		m, err := newMember(settings)
		if err != nil {
			return err
		}
		if err := m.start(); err != nil {
			return err
		}
		members = append(members, m)
		fmt.Println(name, address)
	}
	waitForSignal()
	for _, m := range members {
		m.kill()
	}
	return nil
}
